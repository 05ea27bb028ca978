// What an mqtt.js client sees of a broker: `node mqttjs.js <url> <version>` prints it as one JSON object.
// The test that runs this says what it must be.

"use strict";

const mqtt = require("mqtt");

const [url, version] = [process.argv[2], Number(process.argv[3])];
const WAIT_MS = 20000;

let made = 0;

async function connected(options = {}) {
  made += 1;
  const clientId = `js-${version}-${process.pid}-${made}`;
  const client = await mqtt.connectAsync(url, { protocolVersion: version, clientId, reconnectPeriod: 0, ...options });
  client.heard = [];
  client.on("message", (topic, payload, packet) =>
    client.heard.push({ topic, payload: payload.toString(), qos: packet.qos, retain: packet.retain }));
  return client;
}

async function until(condition, what) {
  const end = Date.now() + WAIT_MS;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`waited too long for ${what}`);
    await new Promise((then) => setTimeout(then, 5));
  }
}

async function qos() {
  const [speaker, listener] = [await connected(), await connected()];
  const granted = await listener.subscribeAsync({ "js/qos/0": { qos: 0 }, "js/qos/1": { qos: 1 }, "js/qos/2": { qos: 2 } });
  for (const level of [0, 1, 2]) {
    for (let number = 0; number < 20; number += 1) await speaker.publishAsync(`js/qos/${level}`, `${number}`, { qos: level });
  }
  await until(() => listener.heard.length >= 60, "60 messages");
  await Promise.all([speaker.endAsync(), listener.endAsync()]);
  const of = (level) => listener.heard.filter((one) => one.topic === `js/qos/${level}`);
  return {
    granted: granted.map((one) => one.qos),
    heard: [0, 1, 2].map((level) => of(level).map((one) => Number(one.payload))),
    levels: [0, 1, 2].map((level) => [...new Set(of(level).map((one) => one.qos))]),
  };
}

async function retained() {
  const speaker = await connected();
  await speaker.publishAsync("js/last", "kept", { qos: 1, retain: true });
  const late = await connected();
  await late.subscribeAsync("js/last", { qos: 1 });
  await until(() => late.heard.length, "the retained message");
  await speaker.publishAsync("js/last", "", { qos: 1, retain: true });
  const later = await connected();
  await later.subscribeAsync("js/last", { qos: 1 });
  await speaker.publishAsync("js/last", "end", { qos: 1 });
  await until(() => later.heard.length, "what comes after a cleared topic");
  await Promise.all([speaker, late, later].map((one) => one.endAsync()));
  return { first: late.heard[0], cleared: later.heard };
}

async function will() {
  const listener = await connected();
  await listener.subscribeAsync("js/will", { qos: 1 });
  const mortal = await connected({ will: { topic: "js/will", payload: "gone", qos: 1, retain: false } });
  mortal.on("error", () => {});
  mortal.stream.destroy();
  await until(() => listener.heard.length, "the will");
  await listener.endAsync();
  return listener.heard;
}

async function persistent() {
  const clientId = `js-kept-${version}-${process.pid}`;
  const kept = version === 5 ? { clean: false, properties: { sessionExpiryInterval: 600 } } : { clean: false };
  const [first, speaker] = [await connected({ clientId, ...kept }), await connected()];
  await first.subscribeAsync("js/kept", { qos: 2 });
  await first.endAsync();
  for (const number of [1, 2, 3]) await speaker.publishAsync("js/kept", `${number}`, { qos: 2 });
  made += 1;
  const again = mqtt.connect(url, { protocolVersion: version, clientId, reconnectPeriod: 0, ...kept });
  const [heard, present] = [[], []];
  again.on("message", (topic, payload) => heard.push(payload.toString()));
  again.on("connect", (packet) => present.push(packet.sessionPresent));
  await until(() => heard.length >= 3, "what waited");
  await Promise.all([again.endAsync(), speaker.endAsync()]);
  return { present, heard };
}

async function shared() {
  const members = [await connected(), await connected()];
  for (const member of members) await member.subscribeAsync("$share/crew/js/work", { qos: 1 });
  const speaker = await connected();
  for (let number = 0; number < 40; number += 1) await speaker.publishAsync("js/work", `${number}`, { qos: 1 });
  await until(() => members[0].heard.length + members[1].heard.length >= 40, "shared work");
  await Promise.all([speaker, ...members].map((one) => one.endAsync()));
  return members.map((member) => member.heard.map((one) => Number(one.payload)));
}

async function filtered() {
  const [speaker, listener] = [await connected(), await connected()];
  const condition = "pm25 > 150";
  if (version === 5) await listener.subscribeAsync("js/air", { qos: 1, properties: { userProperties: { filter: condition } } });
  else await listener.subscribeAsync(`$filter/${encodeURIComponent(condition)}/js/air`, { qos: 1 });
  for (const pm25 of [100, 151, 20, 300]) await speaker.publishAsync("js/air", JSON.stringify({ pm25 }), { qos: 1 });
  await until(() => listener.heard.length >= 2, "what matches");
  await Promise.all([speaker.endAsync(), listener.endAsync()]);
  return listener.heard.map((one) => JSON.parse(one.payload).pm25);
}

async function refused() {
  const client = await connected();
  const wanted = version === 5 ? "js/bad" : `$filter/${encodeURIComponent("pm25 >")}/js/bad`;
  const properties = version === 5 ? { userProperties: { filter: "pm25 >" } } : undefined;
  let said = "";
  try {
    const granted = await client.subscribeAsync(wanted, { qos: 1, properties });
    said = `granted ${granted.map((one) => one.qos)}`;
  } catch (error) {
    said = error.message;
  }
  await client.publishAsync("js/still", "here", { qos: 1 });
  await client.endAsync();
  return said;
}

(async () => {
  const seen = {};
  for (const scene of [qos, retained, will, persistent, shared, filtered, refused]) seen[scene.name] = await scene();
  process.stdout.write(JSON.stringify(seen));
  process.exit(0);
})().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
