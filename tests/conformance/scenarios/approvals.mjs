// A question, its answer, and what follows: the main job.

import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { asked, entry, of, succeeded } from "../page.mjs";

export async function an_approval_resumes_the_same_turn_in_a_new_run(stage) {
  const page = stage.open("mailer");
  const first = await page.say("email ada about lunch");
  const [question] = asked(first);
  equal(question.message, "Send the email?");
  const [call] = of(first, "TOOL_CALL_START");
  equal(question.toolCallId, call.toolCallId);
  await page.agrees();

  const second = await page.answer({ approved: true });
  succeeded(second);
  notEqual(second.started.runId, first.started.runId);
  equal(second.turnId, first.turnId, "one turn");
  deepEqual(of(second, "TOOL_CALL_START"), [], "the call is not announced again");
  const [result] = of(second, "TOOL_CALL_RESULT");
  equal(result.toolCallId, call.toolCallId);
  equal(result.content, "sent");
  equal(page.reply, "send_email: sent");
  await page.agrees();
}

export async function the_operator_sends_one_email_when_approved(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  asked(await page.say(`email ${address} about lunch`));
  deepEqual(stage.sentTo(address), [], "nothing is sent before the answer");
  await page.agrees();
  succeeded(await page.answer({ approved: true }));
  match(page.reply, /^send_email: sent to /);
  equal(stage.sentTo(address).length, 1);
  await page.agrees();
}

export async function a_conversation_goes_on_after_an_approval(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  asked(await page.say(`email ${address} about lunch`));
  succeeded(await page.answer({ approved: true }));
  const next = await page.say("/say and now?");
  succeeded(next);
  equal(page.reply, "and now?");
  equal(stage.sentTo(address).length, 1, "an old approval in the history runs nothing");
  await page.agrees();
}

export async function the_mailer_takes_a_no(stage) {
  await decline(stage, "mailer");
}

export async function the_operator_takes_a_no(stage) {
  await decline(stage, "operator");
}

async function decline(stage, agentId) {
  const page = stage.open(agentId);
  const address = stage.someone();
  const first = await page.say(`email ${address} about lunch`);
  asked(first);
  const second = await page.answer({ approved: false });
  succeeded(second);
  equal(second.turnId, first.turnId, "one turn");
  const [result] = of(second, "TOOL_CALL_RESULT");
  ok(JSON.parse(result.content).error, "the model reads that it was declined");
  match(page.reply, /^send_email failed: /);
  deepEqual(stage.sentTo(address), []);
  await page.agrees();
}

export async function the_secretary_takes_a_no(stage) {
  await decline(stage, "secretary");
}

export async function a_tool_that_needs_approval_asks_by_itself(stage) {
  const page = stage.open("secretary");
  const address = stage.someone();
  const first = await page.say(`email ${address} about lunch`);
  const [question] = asked(first);
  const [call] = of(first, "TOOL_CALL_START");
  equal(question.id, `approve:${call.toolCallId}`);
  equal(question.reason, "tool_call");
  equal(question.toolCallId, call.toolCallId);
  match(question.message, /^Run send_email with to: /);
  deepEqual(question.responseSchema.required, ["approved"]);
  deepEqual(question.metadata.options.map((option) => option.value), [{ approved: true }, { approved: false }]);
  deepEqual(stage.sentTo(address), [], "nothing is sent before the answer");
  await page.agrees();

  const second = await page.answer({ approved: true, reason: "fine" });
  succeeded(second);
  equal(second.turnId, first.turnId, "one turn");
  equal(stage.sentTo(address).length, 1);
  await page.agrees();
}

export async function a_question_that_is_given_up_sends_nothing(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  const first = await page.say(`email ${address} about lunch`);
  asked(first);
  const second = await page.answer(undefined, "cancelled");
  succeeded(second);
  equal(second.turnId, first.turnId, "one turn");
  deepEqual(stage.sentTo(address), []);
  await page.agrees();
}

export async function three_questions_are_answered_each_for_its_own_call(stage) {
  const page = stage.open("many");
  const titles = ["a", "b", "c"];
  const first = await page.say(titles.map((title) => `/tool publish {"title": "${title}"}`).join("\n"));
  const questions = asked(first, 3);
  const calls = of(first, "TOOL_CALL_START").map((event) => event.toolCallId);
  deepEqual(questions.map((question) => question.toolCallId), calls);
  await page.agrees();

  // Answered in another order than asked: the second is declined.
  const resume = [2, 1, 0].map((i) => entry(questions[i].id, { approved: i !== 1 }));
  const second = await page.run({ resume });
  succeeded(second);
  equal(second.turnId, first.turnId, "one turn");
  const results = Object.fromEntries(of(second, "TOOL_CALL_RESULT").map((e) => [e.toolCallId, e.content]));
  equal(results[calls[0]], "published a");
  ok(JSON.parse(results[calls[1]]).error);
  equal(results[calls[2]], "published c");
  await page.agrees();
}

export async function a_cancel_and_a_new_message_in_one_request_are_one_turn(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  const first = await page.say(`email ${address} about lunch`);
  const [question] = asked(first);
  const second = await page.say("/say instead of that", { resume: [entry(question.id, null, "cancelled")] });
  succeeded(second);
  equal(second.turnId, first.turnId, "the message joins the turn");
  equal(page.reply, "instead of that");
  deepEqual(stage.sentTo(address), []);
  await page.agrees();
}
