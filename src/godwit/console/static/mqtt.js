// Just enough MQTT 5 to publish and subscribe over a WebSocket.
const text = new TextEncoder(), decoder = new TextDecoder();
const two = (value) => [value >> 8, value & 255];
const string = (value) => { const data = text.encode(value); return [...two(data.length), ...data]; };
const varint = (value) => { const out = []; do { out.push((value & 127) | (value > 127 ? 128 : 0)); value >>= 7; } while (value); return out; };
const packet = (first, body) => new Uint8Array([first, ...varint(body.length), ...body]);
const KEEP_S = 30;

export class Client {
  constructor(url, options) {
    this.on = options; this.number = 0; this.rest = new Uint8Array(); this.pending = new Map();
    this.socket = new WebSocket(url, ["mqtt"]);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => this.connect(options);
    this.socket.onmessage = (event) => this.read(new Uint8Array(event.data));
    this.socket.onclose = () => { clearInterval(this.timer); options.closed(this.reason ?? "The connection ended."); };
  }

  connect({ id, user, password }) {
    const flags = 2 | (user ? 128 : 0) | (user && password ? 64 : 0);
    const body = [...string("MQTT"), 5, flags, ...two(KEEP_S), 0, ...string(id)];
    if (user) body.push(...string(user));
    if (user && password) body.push(...string(password));
    this.socket.send(packet(0x10, body));
    this.timer = setInterval(() => this.socket.send(new Uint8Array([0xc0, 0])), KEEP_S * 500);
  }

  next() { this.number = (this.number % 65535) + 1; return this.number; }

  subscribe(topics, condition, qos) {
    const number = this.next(), extra = condition ? [0x26, ...string("filter"), ...string(condition)] : [];
    this.socket.send(packet(0x82, [...two(number), ...varint(extra.length), ...extra, ...string(topics), qos]));
    return this.answered(number);
  }

  publish(topic, payload, qos, retain) {
    const number = qos ? this.next() : 0, body = [...string(topic), ...(qos ? two(number) : []), 0, ...text.encode(payload)];
    this.socket.send(packet(0x30 | (qos << 1) | (retain ? 1 : 0), body));
    return qos ? this.answered(number) : Promise.resolve({ code: 0, reason: "" });
  }

  answered(number) { return new Promise((resolve) => this.pending.set(number, resolve)); }

  read(data) {
    const all = new Uint8Array(this.rest.length + data.length);
    all.set(this.rest); all.set(data, this.rest.length);
    let at = 0;
    while (at < all.length) {
      let size = 0, shift = 0, place = at + 1, byte = 128;
      while (byte & 128) { if (place >= all.length) { this.rest = all.slice(at); return; } byte = all[place++]; size |= (byte & 127) << shift; shift += 7; }
      if (place + size > all.length) break;
      this.take(all[at], all.subarray(place, place + size));
      at = place + size;
    }
    this.rest = all.slice(at);
  }

  take(first, body) {
    const kind = first >> 4;
    if (kind === 2) {
      if (body[1]) { this.reason = reasonIn(body, 2) || `Refused (${body[1]}).`; this.socket.close(); } else this.on.opened();
    } else if (kind === 3) this.received(first, body);
    else if (kind === 4 || kind === 9) {
      const number = (body[0] << 8) | body[1];
      const code = kind === 9 ? body[body.length - 1] : body[2] ?? 0;
      this.pending.get(number)?.({ code, reason: body.length > 3 ? reasonIn(body, kind === 9 ? 2 : 3) : "" });
      this.pending.delete(number);
    } else if (kind === 14) { this.reason = (body.length > 1 && reasonIn(body, 1)) || `The broker hung up (${body[0] ?? 0}).`; this.socket.close(); }
  }

  received(first, body) {
    const qos = (first >> 1) & 3, length = (body[0] << 8) | body[1], topic = decoder.decode(body.subarray(2, 2 + length));
    let at = 2 + length;
    if (qos) { this.socket.send(packet(0x40, [body[at], body[at + 1]])); at += 2; }
    const [size, place] = sizeAt(body, at);
    this.on.message({ topic, payload: body.slice(place + size), qos, retain: Boolean(first & 1) });
  }

  close() { if (this.socket.readyState === 1) this.socket.send(new Uint8Array([0xe0, 0])); this.socket.close(); }
}

function sizeAt(body, at) {
  let size = 0, shift = 0, byte = 128;
  while (byte & 128 && at < body.length) { byte = body[at++]; size |= (byte & 127) << shift; shift += 7; }
  return [size, at];
}

// The reason string among the properties, where it is the first that is not a number of fixed size.
function reasonIn(body, at) {
  const [size, begin] = sizeAt(body, at);
  const end = begin + size, fixed = { 0x11: 4, 0x13: 2, 0x21: 2, 0x22: 2, 0x24: 1, 0x25: 1, 0x27: 4, 0x28: 1, 0x29: 1, 0x2a: 1 };
  let place = begin;
  while (place < end) {
    const kind = body[place++];
    if (fixed[kind]) { place += fixed[kind]; continue; }
    const length = (body[place] << 8) | body[place + 1], value = decoder.decode(body.subarray(place + 2, place + 2 + length));
    place += 2 + length;
    if (kind === 0x1f) return value;
    if (kind === 0x26) place += 2 + ((body[place] << 8) | body[place + 1]);
  }
  return "";
}
