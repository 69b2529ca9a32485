// A page: one official client on one thread, and what a person would see of its runs.

import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";

/** Longest wait for one run. */
const RUN_MS = 15_000;

/** What one run showed.
 * @typedef {object} Shown
 * @property {any[]} events as the client took them
 * @property {any} started the RUN_STARTED
 * @property {any} finished what `onRunFinishedEvent` was told, or undefined
 * @property {any} errored the RUN_ERROR, or undefined
 * @property {Error} [rejected] what `runAgent` threw
 * @property {string} turnId
 */

export class Page {
  /**
   * @param {import("./stage.mjs").Stage} stage
   * @param {string} agentId
   * @param {{threadId?: string, messages?: any[], questions?: any[]}} [from] what it shows at first
   */
  constructor(stage, agentId, { threadId = randomUUID(), messages = [], questions = [] } = {}) {
    this.stage = stage;
    this.agentId = agentId;
    this.agent = new stage.client.HttpAgent({
      url: `${stage.url}/api/channels/ag-ui/agents/${agentId}/run`,
      threadId,
      initialMessages: structuredClone(messages),
      fetch: stage.recorder.fetch,
    });
    this.agent.pendingInterrupts = structuredClone(questions);
  }

  get threadId() {
    return this.agent.threadId;
  }

  /** Another page that shows the same: a second tab, or this one after a reload. */
  twin() {
    return new Page(this.stage, this.agentId, {
      threadId: this.threadId,
      messages: this.agent.messages,
      questions: this.agent.pendingInterrupts,
    });
  }

  // ------------------------------------------------------------ a person

  /** Write a message, and run.
   * @param {string} content
   * @param {object} [parameters] for `runAgent`
   */
  say(content, parameters = {}, watch = {}) {
    this.agent.addMessage({ id: randomUUID(), role: "user", content });
    return this.run(parameters, watch);
  }

  /** Answer every open question the same way.
   * @param {any} payload
   */
  answer(payload, status = "resolved") {
    const questions = this.agent.pendingInterrupts;
    ok(questions.length > 0, "the page knows of no open question");
    return this.run({ resume: questions.map(({ id }) => entry(id, payload, status)) });
  }

  /** @returns {Promise<Shown>} */
  async run(parameters = {}, watch = {}) {
    /** @type {any} */
    const shown = { events: [], finished: undefined, errored: undefined, rejected: undefined };
    const hooks = {
      onEvent: ({ event }) => {
        shown.events.push(event);
        if (event.type === "RUN_STARTED") shown.started = event;
        return watch.onEvent?.(event);
      },
      onRunFinishedEvent: ({ event, outcome, interrupts, pendingToolCallIds }) => {
        equal(shown.finished, undefined, "RUN_FINISHED came twice");
        shown.finished = { event, outcome, interrupts, pendingToolCallIds };
      },
      onRunErrorEvent: ({ event }) => {
        equal(shown.errored, undefined, "RUN_ERROR came twice");
        shown.errored = event;
      },
    };
    try {
      await withinTime(this.agent.runAgent({ runId: randomUUID(), ...parameters }, hooks));
    } catch (error) {
      shown.rejected = error;
    }
    shown.turnId = shown.started?.metadata?.["agui-server/turnId"];
    return shown;
  }

  /** Stop what runs, as a stop button does. */
  async stop() {
    const url = `${this.stage.url}/api/client/sessions/${this.threadId}/cancel`;
    const response = await this.stage.recorder.fetch(url, { method: "POST" });
    equal(response.status, 200, "cancel");
    return response.json();
  }

  /** The text of the last assistant message. */
  get reply() {
    return this.agent.messages.findLast((m) => m.role === "assistant")?.content ?? "";
  }

  // ---------------------------------------------------------- the server

  /** What the server has: an attaching run's snapshot and its end. Nothing of the page is used. */
  async truth() {
    const events = await this.post({ messages: [] });
    const snapshot = events.find((event) => event.type === "MESSAGES_SNAPSHOT");
    return { messages: snapshot?.messages ?? [], end: events.at(-1) };
  }

  /** Run without the client, and read all of it.
   * @param {object} input members of the RunAgentInput beside the ids
   */
  async post(input) {
    const body = { threadId: this.threadId, runId: randomUUID(), protocolVersion: "1.0", ...input };
    const response = await this.stage.recorder.fetch(this.agent.url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await withinTime(response.text());
    equal(response.status, 200, text);
    const frames = text.split("\n\n").filter((frame) => frame.startsWith("data: "));
    return frames.map((frame) => JSON.parse(frame.slice("data: ".length)));
  }

  /** The page shows what the server has: messages, their order, open questions. */
  async agrees() {
    const { messages, end } = await this.truth();
    const shown = inCallOrder(this.agent.messages);
    deepEqual(shown.map(plain), messages.map(plain), "the page's messages");
    const open = end.outcome?.interrupts ?? [];
    const ids = (list) => list.map(({ id }) => id);
    deepEqual(ids(this.agent.pendingInterrupts), ids(open), "the page's open questions");
  }
}

/** One entry of a `resume` list. */
export function entry(interruptId, payload, status = "resolved") {
  return status === "resolved" ? { interruptId, status, payload } : { interruptId, status };
}

// ----------------------------------------------------------- expectations

/** The run ended well.
 * @param {Shown} shown
 */
export function succeeded(shown) {
  ended(shown);
  equal(shown.errored, undefined, `RUN_ERROR ${JSON.stringify(shown.errored)}`);
  equal(shown.finished?.outcome, "success", "outcome");
}

/** The run ended with questions; returns them.
 * @param {Shown} shown
 */
export function asked(shown, count = 1) {
  ended(shown);
  equal(shown.errored, undefined, `RUN_ERROR ${JSON.stringify(shown.errored)}`);
  equal(shown.finished?.outcome, "interrupt", "outcome");
  equal(shown.finished.interrupts.length, count, "questions");
  return shown.finished.interrupts;
}

/** The run ended with an error of this code.
 * @param {Shown} shown
 */
export function failed(shown, code) {
  ended(shown);
  equal(shown.errored?.code, code, "RUN_ERROR code");
}

function ended(shown) {
  if (shown.rejected) throw shown.rejected;
  ok(shown.started, "no RUN_STARTED");
  const last = shown.events.at(-1)?.type;
  ok(last === "RUN_FINISHED" || last === "RUN_ERROR", `the stream ended with ${last}`);
}

/** The events of a type. @param {Shown} shown */
export function of(shown, type) {
  return shown.events.filter((event) => event.type === type);
}

/** The codes of the warnings a run carried. @param {Shown} shown */
export function warnings(shown) {
  return of(shown, "CUSTOM")
    .filter((event) => event.name === "agui-server/warning")
    .map((event) => event.value.code);
}

/** Messages with each reply's results in the order of its calls: the server restates them so,
 * the client keeps them as they came. */
function inCallOrder(messages) {
  const calls = messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id));
  const rank = ({ toolCallId }) => calls.indexOf(toolCallId);
  const ordered = [...messages];
  for (let from = 0; from < ordered.length; from++) {
    let to = from;
    while (ordered[to]?.role === "tool") to++;
    const results = ordered.slice(from, to).sort((one, other) => rank(one) - rank(other));
    ordered.splice(from, results.length, ...results);
    from = Math.max(from, to);
  }
  return ordered;
}

/** A message without what client and server may write in two ways. */
export function plain(message) {
  const { id, role, content = "", toolCalls = [], toolCallId } = message;
  const calls = toolCalls.map((call) => [call.id, call.function.name, call.function.arguments]);
  return { id, role, content: wellFormed(content), calls, toolCallId };
}

function wellFormed(content) {
  return typeof content === "string" ? content.toWellFormed() : content;
}

async function withinTime(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${RUN_MS} ms`)), RUN_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
