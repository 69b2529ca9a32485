// The official client as a judge of recorded streams.
//
// Standard input: JSON, a list of streams, each a list of events as they were on the wire.
// Standard output: JSON, for each stream what is wrong with it (`null`: nothing). A warning
// on the console counts: a stream that conforms is taken silently.
import { createRequire } from "node:module";

const require = createRequire(new URL("../conformance/package.json", import.meta.url));
const { enforceEvents, transformChunks, verifyEvents } = require("client-1.0");
const { from, lastValueFrom, toArray } = require("rxjs");

let heard = [];
for (const level of ["warn", "error"]) {
  console[level] = (...words) => heard.push(words.map(String).join(" "));
}

async function judge(events) {
  heard = [];
  try {
    await lastValueFrom(
      from(events).pipe(enforceEvents(), transformChunks(), verifyEvents(), toArray()),
    );
  } catch (error) {
    return String(error?.message ?? error);
  }
  return heard.length ? heard.join("\n") : null;
}

let text = "";
for await (const chunk of process.stdin) text += chunk;
const verdicts = [];
for (const stream of JSON.parse(text)) verdicts.push(await judge(stream));
process.stdout.write(JSON.stringify(verdicts));
