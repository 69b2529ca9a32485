// Records every HTTP exchange, as the bytes came, and checks how they are framed.
//
// An exchange becomes two files: NNN.sse, the body of an event stream, and NNN.json, what was
// asked and how it ended. The Python tests read them with other eyes (test_streams.py).

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const CARRIAGE_RETURN = 0x0d;

export class Recorder {
  /** @param {string} folder where the files go */
  constructor(folder) {
    this.folder = folder;
    this.count = 0;
    this.scenario = "";
    /** @type {Promise<void>[]} exchanges whose body is not read to its end yet */
    this.open = [];
    /** @type {string[]} what was wrong with the bytes */
    this.faults = [];
    mkdirSync(folder, { recursive: true });
  }

  /** The `fetch` that the clients are given.
   * @param {string} url
   * @param {RequestInit} init
   */
  fetch = async (url, init) => {
    const number = ++this.count;
    const response = await fetch(url, init);
    if (response.body === null) return response;
    const [theirs, ours] = response.body.tee();
    this.open.push(this.#record(number, url, init, response, ours));
    const { status, statusText, headers } = response;
    return new Response(theirs, { status, statusText, headers });
  };

  /** Wait until every body was read to its end, or the connection broke. */
  async settle() {
    await Promise.all(this.open.splice(0));
  }

  async #record(number, url, init, response, body) {
    const chunks = [];
    let isComplete = true;
    try {
      for await (const chunk of body) chunks.push(chunk);
    } catch {
      isComplete = false; // the server was killed, or the client went away
    }
    const bytes = Buffer.concat(chunks);
    if (bytes.includes(CARRIAGE_RETURN)) this.faults.push(`a carriage return in the answer of ${url}`);
    const contentType = response.headers.get("content-type") ?? "";
    const about = {
      scenario: this.scenario,
      url,
      status: response.status,
      contentType,
      isComplete,
      request: init?.body ? JSON.parse(String(init.body)) : null,
    };
    const name = join(this.folder, String(number).padStart(4, "0"));
    if (contentType.startsWith("text/event-stream")) writeFileSync(`${name}.sse`, bytes);
    writeFileSync(`${name}.json`, JSON.stringify(about));
  }
}
