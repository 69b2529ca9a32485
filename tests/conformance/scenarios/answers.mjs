// Answers that are wrong, late, repeated, or for nobody. The page is never stuck.

import { deepEqual, equal, ok } from "node:assert/strict";
import { asked, entry, of, succeeded, warnings } from "../page.mjs";

const UNKNOWN = "int-nobody-asked-this";

export async function a_wrong_option_gets_the_question_again(stage) {
  const page = stage.open("chooser");
  const first = await page.say('/tool publish {"title": "news"}');
  const [question] = asked(first);
  deepEqual(question.responseSchema, { enum: ["yes", "no"] });
  deepEqual(question.metadata.options.map((option) => option.value), ["yes", "no"]);

  const second = await page.answer("maybe");
  const [again] = asked(second);
  equal(again.id, question.id, "the same question");
  equal(second.turnId, first.turnId, "one turn");
  equal(warnings(second).length, 1);
  await page.agrees();

  const third = await page.answer("yes");
  succeeded(third);
  equal(third.turnId, first.turnId, "one turn");
  equal(of(third, "TOOL_CALL_RESULT")[0].content, "published news");
  await page.agrees();
}

export async function an_answer_against_the_schema_gets_the_question_again(stage) {
  const page = stage.open("former");
  const first = await page.say('/tool publish {"title": "news"}');
  const [question] = asked(first);
  equal(question.responseSchema.required[0], "approved");
  for (const wrong of [{ approved: "true" }, {}, "yes", { approved: true, more: 1 }]) {
    const shown = await page.answer(wrong);
    equal(asked(shown)[0].id, question.id, "the same question");
    equal(warnings(shown).length, 1);
  }
  await page.agrees();
  const last = await page.answer({ approved: true, note: "fine" });
  succeeded(last);
  equal(last.turnId, first.turnId, "one turn");
  await page.agrees();
}

export async function the_same_answer_twice_counts_once(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  const first = await page.say(`email ${address} about lunch`);
  asked(first);
  const twin = page.twin();
  succeeded(await page.answer({ approved: true }));

  const late = await twin.answer({ approved: true });
  succeeded(late);
  equal(late.turnId, first.turnId, "it attaches to the turn it answered");
  deepEqual(of(late, "TOOL_CALL_START"), [], "nothing finished is streamed again");
  await twin.agrees();
  deepEqual(twin.agent.messages, page.agent.messages, "both tabs show the same");
  equal(stage.sentTo(address).length, 1);
}

export async function a_later_no_does_not_undo_a_yes(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  asked(await page.say(`email ${address} about lunch`));
  const twin = page.twin();
  succeeded(await page.answer({ approved: true }));
  succeeded(await twin.answer({ approved: false }));
  equal(stage.sentTo(address).length, 1);
  equal(twin.reply, page.reply);
  await twin.agrees();
}

export async function fifty_answers_at_once_send_one_email(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  const first = await page.say(`email ${address} about lunch`);
  asked(first);
  const tabs = Array.from({ length: 50 }, () => page.twin());
  const shown = await Promise.all(tabs.map((tab) => tab.answer({ approved: true })));
  shown.forEach(succeeded);
  deepEqual(new Set(shown.map((each) => each.turnId)), new Set([first.turnId]), "one turn");
  equal(new Set(shown.map((each) => each.started.runId)).size, 50, "fifty runs");
  equal(stage.sentTo(address).length, 1, "one email");
  for (const tab of tabs) equal(tab.reply, `send_email: sent to ${address}`);
  await Promise.all(tabs.slice(0, 5).map((tab) => tab.agrees()));
}

export async function an_answer_to_a_question_nobody_asked_does_nothing(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  const [question] = asked(await page.say(`email ${address} about lunch`));

  // A page that lost its questions and makes one up: it is shown the open one.
  page.agent.pendingInterrupts = [];
  const forged = await page.run({ resume: [entry(UNKNOWN, { approved: true })] });
  equal(asked(forged)[0].id, question.id);
  ok(warnings(forged).length > 0, "a warning");
  deepEqual(stage.sentTo(address), []);
  await page.agrees();

  // Beside the right one it is left out.
  const resume = [entry(UNKNOWN, { approved: true }), entry(question.id, { approved: true })];
  const both = await page.run({ resume });
  succeeded(both);
  equal(warnings(both).length, 1);
  equal(stage.sentTo(address).length, 1);
  await page.agrees();
}

export async function an_answer_on_a_thread_without_questions_is_left_out(stage) {
  const page = stage.open("assistant");
  succeeded(await page.say("/say hello"));
  const shown = await page.say("/say still here", { resume: [entry(UNKNOWN, true)] });
  succeeded(shown);
  equal(warnings(shown).length, 1);
  equal(page.reply, "still here");
  await page.agrees();
}

export async function a_page_that_lost_its_question_is_shown_it(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  const first = await page.say(`email ${address} about lunch`);
  const [question] = asked(first);
  page.agent.pendingInterrupts = []; // a reload that kept the messages only
  const second = await page.say("hello?");
  equal(asked(second)[0].id, question.id);
  deepEqual(warnings(second), ["session_interrupted"]);
  equal(page.agent.messages.at(-1).content, "hello?", "what was typed stays on the screen");
  const third = await page.answer({ approved: true });
  succeeded(third);
  equal(stage.sentTo(address).length, 1);
  await page.agrees();
}

export async function an_answered_question_is_not_offered_after_a_reload(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  asked(await page.say(`email ${address} about lunch`));
  succeeded(await page.answer({ approved: true }));
  const reloaded = stage.open("operator", { threadId: page.threadId });
  succeeded(await reloaded.run());
  deepEqual(reloaded.agent.pendingInterrupts, []);
  await reloaded.agrees();
}
