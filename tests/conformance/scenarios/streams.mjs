// What a model can say, and how a page ends up showing it.

import { deepEqual, equal, match } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { of, succeeded } from "../page.mjs";

const PICK = { name: "pick", description: "Pick one.", parameters: { type: "object", properties: {} } };

export async function the_assistant_tells_the_weather(stage) {
  const page = stage.open("assistant");
  const shown = await page.say("weather in Lisbon");
  succeeded(shown);
  equal(of(shown, "TOOL_CALL_RESULT").length, 1);
  match(page.reply, /It is \w+ in Lisbon/);
  await page.agrees();
}

export async function parallel_tools_are_shown_in_the_order_of_their_calls(stage) {
  const page = stage.open("plain");
  const words = ["one", "two", "three", "four"];
  const shown = await page.say(words.map((word) => `/tool echo {"text": "${word}"}`).join("\n"));
  succeeded(shown);
  const [asking] = page.agent.messages.filter((message) => message.toolCalls);
  equal(asking.toolCalls.length, 4, "one reply asks for all");
  const results = Object.fromEntries(of(shown, "TOOL_CALL_RESULT").map((e) => [e.toolCallId, e.content]));
  deepEqual(asking.toolCalls.map(({ id }) => results[id]), words);
  equal(page.reply, words.map((word) => `echo: ${word}`).join("\n"));
  await page.agrees();
}

export async function a_text_and_a_tool_call_share_one_message(stage) {
  const page = stage.open("plain");
  succeeded(await page.say('/say let me see\n/tool echo {"text": "hm"}\n/then /say so it is'));
  const [asking] = page.agent.messages.filter((message) => message.toolCalls);
  equal(asking.content, "let me see");
  equal(page.reply, "so it is");
  await page.agrees();
}

export async function reasoning_is_shown_apart_from_the_reply(stage) {
  const page = stage.open("assistant");
  const shown = await page.say("/think hm let me see\n/say hello there");
  succeeded(shown);
  equal(of(shown, "REASONING_START").length, 1);
  equal(of(shown, "REASONING_END").length, 1);
  const [thought] = page.agent.messages.filter((message) => message.role === "reasoning");
  equal(thought.content, "hm let me see");
  equal(page.reply, "hello there");
  await page.agrees();
  succeeded(await page.say("/think again\n/say and again")); // reasoning comes back in the input
  await page.agrees();
}

export async function a_tool_without_arguments_gets_an_empty_object(stage) {
  const page = stage.open("plain");
  const shown = await page.say("/tool ping");
  succeeded(shown);
  const [asking] = page.agent.messages.filter((message) => message.toolCalls);
  equal(asking.toolCalls[0].function.arguments, "{}");
  equal(page.reply, "ping: pong");
  await page.agrees();
}

export async function a_long_text_arrives_whole(stage) {
  const page = stage.open("assistant");
  succeeded(await page.say("/tokens 5000"));
  equal(page.reply, Array.from({ length: 5000 }, (_, i) => `word${i} `).join(""));
  await page.agrees();
}

export async function a_frontend_tool_is_answered_in_the_same_turn(stage) {
  const page = stage.open("assistant");
  const first = await page.say("/tool pick\n/then /say thanks", { tools: [PICK] });
  succeeded(first);
  const [{ toolCallId }] = of(first, "TOOL_CALL_START");
  if (stage.isCurrent) deepEqual(first.finished.pendingToolCallIds, [toolCallId]);
  deepEqual(of(first, "TOOL_CALL_RESULT"), [], "the server never answers the client's call");
  page.agent.addMessage({ id: randomUUID(), role: "tool", toolCallId, content: "the red one" });
  const second = await page.run({ tools: [PICK] });
  succeeded(second);
  equal(second.turnId, first.turnId, "one turn");
  equal(page.reply, "thanks");
  await page.agrees();
}

export async function the_same_request_again_attaches_to_its_run(stage) {
  const page = stage.open("assistant");
  const runId = randomUUID();
  const before = page.twin();
  const message = { id: randomUUID(), role: "user", content: "/say once" };
  for (const each of [page, before]) each.agent.addMessage(message);
  const first = await page.run({ runId });
  const again = await before.run({ runId });
  for (const shown of [first, again]) succeeded(shown);
  equal(again.turnId, first.turnId, "one turn");
  deepEqual(of(again, "TEXT_MESSAGE_START"), [], "nothing finished is streamed again");
  equal(before.reply, "once");
  await before.agrees();
}

export async function two_tabs_that_send_at_once_share_one_turn(stage) {
  const page = stage.open("assistant");
  page.agent.addMessage({ id: randomUUID(), role: "user", content: "/tokens 60 every 10" });
  const twin = page.twin();
  const shown = await Promise.all([page.run(), twin.run()]);
  shown.forEach(succeeded);
  equal(shown[0].turnId, shown[1].turnId, "one turn");
  equal(page.reply, twin.reply);
  await page.agrees();
  await twin.agrees();
}

export async function regenerating_replaces_the_reply(stage) {
  const page = stage.open("assistant");
  const first = await page.say("/say here you are");
  succeeded(first);
  page.agent.messages = page.agent.messages.slice(0, 1);
  const second = await page.run();
  succeeded(second);
  equal(second.turnId === first.turnId, false, "another turn");
  equal(page.agent.messages.length, 2);
  await page.agrees();
}

export async function a_tab_that_joins_in_the_middle_of_a_text_shows_all_of_it(stage) {
  const page = stage.open("assistant");
  page.agent.addMessage({ id: randomUUID(), role: "user", content: "/think hm hm\n/tokens 120 every 10" });
  const twin = page.twin();
  let joined;
  let words = 0;
  const first = await page.run({}, {
    onEvent: (event) => {
      if (event.type === "TEXT_MESSAGE_CONTENT" && ++words === 3) joined = twin.run();
    },
  });
  succeeded(first);
  const second = await joined;
  succeeded(second);
  equal(second.turnId, first.turnId, "one turn");
  match(of(second, "TEXT_MESSAGE_CONTENT")[0].delta, /^word0 word1 /, "all its text so far in one delta");
  equal(twin.reply, page.reply);
  await page.agrees();
  await twin.agrees();
}

export async function another_message_while_a_turn_runs_is_refused(stage) {
  const page = stage.open("assistant");
  succeeded(await page.say("/say hello"));
  const twin = page.twin();
  stage.expectNoise(/console\.error: Agent execution failed/);
  let refused;
  let words = 0;
  const shown = await page.say("/tokens 120 every 10", {}, {
    onEvent: (event) => {
      if (event.type === "TEXT_MESSAGE_CONTENT" && ++words === 3) refused = twin.say("/say me too");
    },
  });
  succeeded(shown);
  const { rejected } = await refused;
  equal(rejected?.status, 409);
  match(rejected.message, /"code":"turn_already_active"/);
  await page.agrees();
}
