// Plays scenarios against servers. Speaks JSON lines with whoever started it:
//
//   in   {"scenario": "an_approval_…", "url": "http://…", "outbox": "…"}
//   out  {"scenario": "an_approval_…", "passed": true, "details": [], "ms": 81}
//   out  {"machine": "kill" | "start"}      asks for the server's process; waits for a line
//
// Usage: node main.mjs --client 1.0|0.0 --record FOLDER

import { readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { inspect, parseArgs } from "node:util";
import { Recorder } from "./recorder.mjs";
import { Stage } from "./stage.mjs";

const { values } = parseArgs({ options: { client: { type: "string" }, record: { type: "string" } } });
const version = /** @type {"1.0" | "0.0"} */ (values.client);
const client = await import(`client-${version}`);
const recorder = new Recorder(values.record);
const scenarios = await readScenarios();
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** @type {Stage | undefined} */
let stage;
for (const method of /** @type {const} */ (["warn", "error"])) {
  console[method] = (...words) => noteNoise(`console.${method}: ${words.map(word).join(" ")}`);
}
// A dropped connection rejects a promise inside the client that nobody holds.
process.on("unhandledRejection", (error) => noteNoise(`unhandled: ${word(error)}`));

for (let line = await nextLine(); line !== undefined; line = await nextLine()) {
  send(await play(line));
}

/** Play one scenario; everything that is wrong ends up in `details`. */
async function play({ scenario, url, outbox }) {
  const began = performance.now();
  const details = [];
  stage = new Stage({ version, client, url, outbox, recorder, machine: { kill: ask("kill"), start: ask("start") } });
  recorder.scenario = scenario;
  try {
    await scenarios[scenario](stage);
  } catch (error) {
    details.push(word(error));
  }
  await recorder.settle();
  await new Promise(setImmediate); // a rejection that nobody holds is told after this
  details.push(...stage.faults(), ...recorder.faults.splice(0));
  return { scenario, passed: details.length === 0, details, ms: Math.round(performance.now() - began) };
}

/** @returns {Promise<Record<string, (stage: Stage) => Promise<void>>>} */
async function readScenarios() {
  const files = readdirSync(new URL("scenarios/", import.meta.url)).sort();
  const modules = await Promise.all(files.map((file) => import(`./scenarios/${file}`)));
  return Object.assign({}, ...modules);
}

/** @param {"kill" | "start"} what */
function ask(what) {
  return async () => {
    send({ machine: what });
    await nextLine();
  };
}

async function nextLine() {
  const { value, done } = await lines.next();
  return done ? undefined : JSON.parse(value);
}

function send(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function noteNoise(text) {
  if (stage) stage.noise.push(text);
  else process.stderr.write(`${text}\n`);
}

function word(value) {
  return value instanceof Error ? (value.stack ?? String(value)) : typeof value === "string" ? value : inspect(value);
}
