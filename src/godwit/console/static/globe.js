// A map without tiles: a graticule, areas, arcs and many moving points on one canvas.
//
// Points live in typed arrays, drawn as rectangles with one colour change for each broker. Between two reports a point
// moves evenly, so that what is heard once a second glides. Nothing is allocated in a frame.
const TILE = 256, MOVE_MS = 1100, GONE_MS = 60000;
const clampLat = (lat) => Math.max(-85.05, Math.min(85.05, lat));
export const mercatorX = (lon) => (lon + 180) / 360;
export const mercatorY = (lat) => {
  const sine = Math.sin((clampLat(lat) * Math.PI) / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
};
const latOf = (y) => (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI;
const EARTH_M = 40075016.7;

export class Globe {
  constructor(canvas, colours) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.colours = colours;
    this.x = 0.5; this.y = 0.4; this.zoom = 2;
    this.layers = { things: true, areas: true, cells: true, arcs: true, brokers: true };
    this.areas = []; this.cells = []; this.arcs = []; this.brokers = [];
    this.names = []; this.index = new Map();
    this.room(1024);
    this.fitted = false; this.moved = false;
    this.frames = 0; this.cost = 0; this.costs = []; this.stopped = false;
    this.listen();
    this.request = requestAnimationFrame((now) => this.frame(now));
  }

  room(size) {
    const grown = (kind, old) => { const made = new kind(size); if (old) made.set(old); return made; };
    this.fromX = grown(Float64Array, this.fromX); this.fromY = grown(Float64Array, this.fromY);
    this.toX = grown(Float64Array, this.toX); this.toY = grown(Float64Array, this.toY);
    this.began = grown(Float64Array, this.began); this.owner = grown(Uint8Array, this.owner);
    this.size = size;
  }

  get scale() { return TILE * 2 ** this.zoom; }

  thing(name, lat, lon, owner, now) {
    let at = this.index.get(name);
    const x = mercatorX(lon), y = mercatorY(lat);
    if (at === undefined) {
      at = this.names.length;
      if (at === this.size) this.room(this.size * 2);
      this.index.set(name, at); this.names.push(name);
      this.fromX[at] = x; this.fromY[at] = y;
    } else {
      const part = Math.min(1, (now - this.began[at]) / MOVE_MS);
      this.fromX[at] += (this.toX[at] - this.fromX[at]) * part; this.fromY[at] += (this.toY[at] - this.fromY[at]) * part;
    }
    this.toX[at] = x; this.toY[at] = y; this.began[at] = now; this.owner[at] = owner;
    return at;
  }

  fit() {
    let west = Infinity, east = -Infinity, north = Infinity, south = -Infinity;
    const take = (x, y) => { west = Math.min(west, x); east = Math.max(east, x); north = Math.min(north, y); south = Math.max(south, y); };
    for (let at = 0; at < this.names.length; at++) take(this.toX[at], this.toY[at]);
    for (const one of this.brokers) take(mercatorX(one.lon), mercatorY(one.lat));
    if (west === Infinity) for (const one of this.areas) {
      if (one.circle) take(mercatorX(one.circle[1]), mercatorY(one.circle[0]));
      if (one.box) { take(mercatorX(one.box[1]), mercatorY(one.box[0])); take(mercatorX(one.box[3]), mercatorY(one.box[2])); }
    }
    if (west === Infinity) return false;
    this.x = (west + east) / 2; this.y = (north + south) / 2;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const span = Math.max((east - west) / (width * 0.8), (south - north) / (height * 0.75), 1e-7);
    this.zoom = Math.max(1, Math.min(17, Math.log2(1 / (span * TILE))));
    return true;
  }

  frame(now) {
    if (this.stopped) return;
    const began = performance.now();
    this.draw(now);
    this.costs.push(performance.now() - began);
    if (this.costs.length > 60) this.costs.shift();
    this.frames++;
    this.request = requestAnimationFrame((next) => this.frame(next));
  }

  draw(now) {
    const { canvas, context } = this;
    const ratio = Math.min(2, devicePixelRatio || 1), width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
    if (!this.fitted && !this.moved) this.fitted = this.fit();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.left = this.x * this.scale - width / 2; this.top = this.y * this.scale - height / 2;
    this.graticule(width, height);
    if (this.layers.cells) this.shapes(this.cells, 0.05, true);
    if (this.layers.areas) this.shapes(this.areas, 0.12, false);
    if (this.layers.brokers) this.coverage();
    if (this.layers.arcs) this.flights(now);
    if (this.layers.things) this.points(now, width, height);
    if (this.layers.brokers) this.stands();
  }

  graticule(width, height) {
    const { context, colours } = this;
    const degrees = 360 / 2 ** this.zoom;
    const step = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001].find((one) => one < degrees * 0.6) ?? 0.001;
    const digits = Math.max(0, Math.ceil(-Math.log10(step)));
    const west = ((this.left / this.scale) * 360) - 180, east = (((this.left + width) / this.scale) * 360) - 180;
    const north = latOf(this.top / this.scale), south = latOf((this.top + height) / this.scale);
    context.strokeStyle = colours.line; context.fillStyle = colours.dim; context.lineWidth = 1; context.font = "11px system-ui, sans-serif";
    context.beginPath();
    for (let lon = Math.ceil(west / step) * step; lon <= east; lon += step) { const x = Math.round(mercatorX(lon) * this.scale - this.left) + 0.5; context.moveTo(x, 0); context.lineTo(x, height); context.fillText(`${lon.toFixed(digits)}°`, x + 3, height - 5); }
    for (let lat = Math.ceil(south / step) * step; lat <= north; lat += step) { const y = Math.round(mercatorY(lat) * this.scale - this.top) + 0.5; context.moveTo(0, y); context.lineTo(width, y); context.fillText(`${lat.toFixed(digits)}°`, 4, y - 3); }
    context.stroke();
  }

  shapes(areas, fill, dashed) {
    const { context, colours } = this;
    context.lineWidth = 1.2; context.setLineDash(dashed ? [4, 4] : []);
    for (const one of areas) {
      context.beginPath();
      if (one.circle) {
        const [lat, lon, metres] = one.circle;
        const radius = ((metres / EARTH_M) * this.scale) / Math.cos((clampLat(lat) * Math.PI) / 180);
        context.arc(mercatorX(lon) * this.scale - this.left, mercatorY(lat) * this.scale - this.top, Math.max(2, radius), 0, 7);
      } else {
        const [south, west, north, east] = one.box;
        const x = mercatorX(west) * this.scale - this.left, y = mercatorY(north) * this.scale - this.top;
        context.rect(x, y, mercatorX(east) * this.scale - this.left - x, mercatorY(south) * this.scale - this.top - y);
      }
      context.fillStyle = context.strokeStyle = colours.brokers[one.owner];
      context.globalAlpha = fill; context.fill();
      context.globalAlpha = 0.6; context.stroke();
    }
    context.globalAlpha = 1; context.setLineDash([]);
  }

  coverage() {
    const { context, colours } = this;
    context.lineWidth = 1; context.setLineDash([2, 5]);
    for (const one of this.brokers) if (one.radius) {
      context.fillStyle = context.strokeStyle = colours.brokers[one.owner];
      context.beginPath(); context.arc(mercatorX(one.lon) * this.scale - this.left, mercatorY(one.lat) * this.scale - this.top, ((one.radius / EARTH_M) * this.scale) / Math.cos((one.lat * Math.PI) / 180), 0, 7);
      context.globalAlpha = 0.08; context.fill(); context.globalAlpha = 0.7; context.stroke();
    }
    context.globalAlpha = 1; context.setLineDash([]);
  }

  stands() {
    const { context, colours } = this;
    context.font = "600 12px system-ui, sans-serif";
    for (const one of this.brokers) {
      const x = mercatorX(one.lon) * this.scale - this.left, y = mercatorY(one.lat) * this.scale - this.top;
      context.fillStyle = colours.brokers[one.owner];
      context.fillRect(x - 7, y - 7, 14, 14);
      context.lineWidth = 2; context.strokeStyle = colours.panel; context.strokeRect(x - 7, y - 7, 14, 14);
      context.lineWidth = 4; context.strokeText(one.name, x + 11, y + 4);
      context.fillStyle = colours.text; context.fillText(one.name, x + 11, y + 4);
    }
  }

  flights(now) {
    const { context, colours } = this;
    context.lineWidth = 1.6;
    for (const one of this.arcs) {
      const x1 = mercatorX(one.from[1]) * this.scale - this.left, y1 = mercatorY(one.from[0]) * this.scale - this.top;
      const x2 = mercatorX(one.to[1]) * this.scale - this.left, y2 = mercatorY(one.to[0]) * this.scale - this.top;
      const mx = (x1 + x2) / 2 - (y2 - y1) * 0.18, my = (y1 + y2) / 2 + (x2 - x1) * 0.18;
      context.strokeStyle = context.fillStyle = colours.brokers[one.owner];
      context.globalAlpha = 0.5; context.beginPath(); context.moveTo(x1, y1); context.quadraticCurveTo(mx, my, x2, y2); context.stroke();
      const t = (now / 1800 + one.phase) % 1, u = 1 - t;
      context.globalAlpha = 1; context.beginPath(); context.arc(u * u * x1 + 2 * u * t * mx + t * t * x2, u * u * y1 + 2 * u * t * my + t * t * y2, 3, 0, 7); context.fill();
    }
    context.globalAlpha = 1;
  }

  points(now, width, height) {
    const { context, colours, names } = this;
    const size = names.length > 4000 ? 3 : names.length > 800 ? 4 : 6, half = size / 2;
    for (let owner = 0; owner < 8; owner++) {
      context.fillStyle = colours.brokers[owner];
      for (let at = 0; at < names.length; at++) {
        if (this.owner[at] !== owner) continue;
        const age = now - this.began[at];
        if (age > GONE_MS) continue;
        const part = age > MOVE_MS ? 1 : age < 0 ? 0 : age / MOVE_MS;
        const x = (this.fromX[at] + (this.toX[at] - this.fromX[at]) * part) * this.scale - this.left, y = (this.fromY[at] + (this.toY[at] - this.fromY[at]) * part) * this.scale - this.top;
        if (x > -size && y > -size && x < width + size && y < height + size) context.fillRect(x - half, y - half, size, size);
      }
    }
  }

  near(px, py) {
    let best = -1, least = 144;
    for (let at = 0; at < this.names.length; at++) {
      const dx = this.toX[at] * this.scale - this.left - px, dy = this.toY[at] * this.scale - this.top - py;
      if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = at; }
    }
    return best;
  }

  zoomBy(step, px = this.canvas.clientWidth / 2, py = this.canvas.clientHeight / 2) {
    const fx = (this.left + px) / this.scale, fy = (this.top + py) / this.scale;
    this.zoom = Math.max(1, Math.min(18, this.zoom + step));
    this.x = fx - (px - this.canvas.clientWidth / 2) / this.scale; this.y = fy - (py - this.canvas.clientHeight / 2) / this.scale;
    this.moved = true;
  }

  listen() {
    const held = new Map();
    let spread = 0;
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => { held.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId); spread = 0; });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => { held.delete(event.pointerId); spread = 0; });
    canvas.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId);
      if (!before) return this.onhover?.(event);
      held.set(event.pointerId, event);
      if (held.size === 1) { this.x -= (event.clientX - before.clientX) / this.scale; this.y -= (event.clientY - before.clientY) / this.scale; this.moved = true; return; }
      const [one, other] = [...held.values()];
      const now = Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY), box = canvas.getBoundingClientRect();
      if (spread) this.zoomBy(Math.log2(now / spread), (one.clientX + other.clientX) / 2 - box.left, (one.clientY + other.clientY) / 2 - box.top);
      spread = now;
    });
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoomBy(-event.deltaY / 300, event.offsetX, event.offsetY); }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = 60 / this.scale;
      const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
      if (moves[event.key]) { event.preventDefault(); this.x += moves[event.key][0]; this.y += moves[event.key][1]; this.moved = true; }
      if (event.key === "+" || event.key === "-") this.zoomBy(event.key === "+" ? 0.5 : -0.5);
    });
  }

  stop() { this.stopped = true; cancelAnimationFrame(this.request); }
}
