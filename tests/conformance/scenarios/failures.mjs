// A provider that fails. Sending again works, and nothing that ran runs again.

import { deepEqual, equal, match } from "node:assert/strict";
import { asked, failed, of, succeeded } from "../page.mjs";

const tool = (address) => `/tool send_email {"to": "${address}", "subject": "lunch"}`;

export async function a_failure_before_the_question_is_healed_by_sending_again(stage) {
  const page = stage.open("flaky");
  const address = stage.someone();
  const first = await page.say(`/fail 500 times 1\n${tool(address)}`);
  failed(first, "provider_error");
  equal(first.finished, undefined, "no answer was taken, so one terminal event");
  await page.agrees();

  asked(await page.run()); // the same view again
  await page.agrees();
  succeeded(await page.answer({ approved: true }));
  equal(page.reply, `send_email: sent to ${address}`);
  equal(stage.sentTo(address).length, 1);
  await page.agrees();
}

export async function a_failure_after_the_answer_keeps_what_the_tool_did(stage) {
  const page = stage.open("flaky");
  const address = stage.someone();
  const first = await page.say(`${tool(address)}\n/then /fail 500 times 1\n/then /say all done`);
  asked(first);
  const second = await page.answer({ approved: true });
  failed(second, "provider_error");
  equal(second.turnId, first.turnId, "one turn");
  equal(of(second, "TOOL_CALL_RESULT").length, 1);
  equal(of(second, "RUN_FINISHED").length, 1, "a finished run goes before the error");
  deepEqual(page.agent.pendingInterrupts, [], "the page may go on");
  equal(stage.sentTo(address).length, 1);
  await page.agrees();

  const third = await page.run(); // the same view again
  succeeded(third);
  equal(page.reply, "all done");
  equal(stage.sentTo(address).length, 1, "the tool did not run again");
  await page.agrees();
}

export async function a_failure_after_the_answer_is_healed_by_the_same_answer(stage) {
  const page = stage.open("flaky");
  const address = stage.someone();
  const questions = asked(await page.say(`${tool(address)}\n/then /fail 500 times 1\n/then /say all done`));
  failed(await page.answer({ approved: true }), "provider_error");
  page.agent.pendingInterrupts = questions; // a page that never takes a question off its list
  succeeded(await page.answer({ approved: true }));
  equal(page.reply, "all done");
  equal(stage.sentTo(address).length, 1, "the tool did not run again");
  await page.agrees();
}

export async function a_page_that_missed_the_failure_is_told_by_the_same_answer(stage) {
  const page = stage.open("flaky");
  const address = stage.someone();
  const first = await page.say(`${tool(address)}\n/then /fail 500 times 1\n/then /say all done`);
  asked(first);
  const twin = page.twin();
  failed(await page.answer({ approved: true }), "provider_error");
  // Its view ends on the assistant's message, so nothing starts: it attaches to what happened.
  const late = await twin.answer({ approved: true });
  failed(late, "provider_error");
  equal(late.turnId, first.turnId, "the turn it answered");
  equal(stage.sentTo(address).length, 1, "the tool did not run again");
  await twin.agrees();
  succeeded(await twin.run());
  equal(twin.reply, "all done");
  await twin.agrees();
}

export async function a_failure_after_the_answer_lets_the_next_message_in(stage) {
  const page = stage.open("flaky");
  const address = stage.someone();
  asked(await page.say(`${tool(address)}\n/then /fail 500`));
  failed(await page.answer({ approved: true }), "provider_error");
  succeeded(await page.say("/say a new question"));
  equal(page.reply, "a new question");
  equal(stage.sentTo(address).length, 1);
  await page.agrees();
}

export async function a_retried_model_call_leaves_one_reply(stage) {
  const page = stage.open("patient");
  const shown = await page.say("/say this is lost\n/fail 503 times 1\n/say this stays");
  succeeded(shown);
  equal(page.agent.messages.length, 2, "the partial reply is gone");
  match(page.reply, /this stays$/);
  await page.agrees();
}

export async function a_provider_that_is_down_is_told_in_a_public_sentence(stage) {
  const page = stage.open("patient");
  const shown = await page.say("/fail 503");
  failed(shown, "provider_error");
  equal(shown.errored.message.includes("503"), false, "not in the provider's words");
  succeeded(await page.say("/say better"));
  equal(page.reply, "better");
  await page.agrees();
}

export async function a_tool_that_raises_fails_alone(stage) {
  const page = stage.open("plain");
  const shown = await page.say('/tool broken\n/tool echo {"text": "fine"}');
  succeeded(shown);
  const [first, second] = of(shown, "TOOL_CALL_START").map(({ toolCallId }) =>
    of(shown, "TOOL_CALL_RESULT").find((result) => result.toolCallId === toolCallId),
  );
  equal(JSON.parse(first.content).error.includes("must never"), false, "not in the exception's words");
  equal(second.content, "fine");
  await page.agrees();
}

export async function a_failure_in_the_middle_of_a_text_takes_it_back(stage) {
  const page = stage.open("flaky");
  const shown = await page.say("/say half a reply\n/fail 500 times 1\n/say a whole one");
  failed(shown, "provider_error");
  await page.agrees();
  succeeded(await page.run());
  match(page.reply, /a whole one$/);
  await page.agrees();
}

export async function a_failure_in_the_middle_of_a_tool_call_takes_it_back(stage) {
  const page = stage.open("flaky");
  const address = stage.someone();
  failed(await page.say(`${tool(address)}\n/fail 500 times 1`), "provider_error");
  await page.agrees();
  asked(await page.run());
  succeeded(await page.answer({ approved: true }));
  equal(stage.sentTo(address).length, 1);
  await page.agrees();
}

export async function a_page_that_shows_half_a_reply_can_go_on(stage) {
  const page = stage.open("flaky");
  failed(await page.say("/say half a reply\n/fail 500"), "provider_error");
  succeeded(await page.say("/say a new question"));
  equal(page.reply, "a new question");
  await page.agrees();
}
