// Where a scenario plays: one version of the client, one server, and whoever watches.

import { existsSync, readFileSync } from "node:fs";
import { Page } from "./page.mjs";

/** @typedef {{kill: () => Promise<void>, start: () => Promise<void>}} Machine the server's process */

export class Stage {
  /**
   * @param {object} set
   * @param {"1.0" | "0.0"} set.version
   * @param {any} set.client the client's module
   * @param {string} set.url the server's
   * @param {string} set.outbox its file of sent emails
   * @param {import("./recorder.mjs").Recorder} set.recorder
   * @param {Machine} set.machine
   */
  constructor({ version, client, url, outbox, recorder, machine }) {
    Object.assign(this, { version, client, url, outbox, recorder, machine });
    /** Whether the client knows the outcomes of 1.0. */
    this.isCurrent = version === "1.0";
    /** @type {string[]} what the client logged, and promises nobody caught */
    this.noise = [];
    /** @type {RegExp[]} noise that the scenario expects, once each */
    this.expected = [];
  }

  /** Open a page on a thread of its own. */
  open(agentId, from = {}) {
    return new Page(this, agentId, from);
  }

  /** Say that a line of noise with this text will come, once. @param {RegExp} text */
  expectNoise(text) {
    this.expected.push(text);
  }

  /** An address nobody else writes to. */
  someone() {
    return `${crypto.randomUUID()}@example.com`;
  }

  /** The emails sent to somebody. */
  sentTo(address) {
    const lines = existsSync(this.outbox) ? readFileSync(this.outbox, "utf8").split("\n") : [];
    return lines.filter((line) => line.includes(address));
  }

  /** What was noisy and should not have been, and what should have been and was not. */
  faults() {
    const noise = [...this.noise];
    const missing = this.expected.filter((text) => {
      const at = noise.findIndex((line) => text.test(line));
      if (at >= 0) noise.splice(at, 1);
      return at < 0;
    });
    return [
      ...noise.map((line) => `unexpected: ${line}`),
      ...missing.map((text) => `expected and not seen: ${text}`),
    ];
  }
}
