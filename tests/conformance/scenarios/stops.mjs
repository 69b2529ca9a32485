// Stopping on purpose: neither a success nor, for a 1.0 client, a failure.

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { asked, failed, of, succeeded } from "../page.mjs";

/** The run was stopped, told the way this client understands. */
function stopped(stage, shown) {
  if (!stage.isCurrent) return failed(shown, "cancelled");
  equal(shown.rejected, undefined);
  equal(shown.errored, undefined);
  equal(shown.finished?.outcome, "cancelled");
}

export async function stopping_in_the_middle_of_a_text_ends_as_cancelled(stage) {
  const page = stage.open("assistant");
  let words = 0;
  let stop;
  const shown = await page.say("/tokens 2000 every 5", {}, {
    onEvent: (event) => {
      if (event.type === "TEXT_MESSAGE_CONTENT" && ++words === 3) stop = page.stop();
    },
  });
  stopped(stage, shown);
  deepEqual((await stop).turn_ids, [shown.turnId]);
  const partial = page.reply;
  match(partial, /^word0 word1 word2 /, "what people saw stays on their screen");
  ok(!partial.includes("word1999"));
  equal(of(shown, "TEXT_MESSAGE_END").length, 1, "the message is closed");

  const next = await page.say("/say and on");
  succeeded(next);
  equal(page.reply, "and on");
  await page.agrees(); // the partial text came with the view, and is recorded now
  ok(page.agent.messages.some((message) => message.content === partial));
}

export async function a_stopped_thread_is_shown_to_a_reload(stage) {
  const page = stage.open("assistant");
  let stop;
  const shown = await page.say("/tokens 2000 every 5", {}, {
    onEvent: (event) => {
      if (event.type === "TEXT_MESSAGE_CONTENT") stop ??= page.stop();
    },
  });
  stopped(stage, shown);
  await stop;
  const reloaded = stage.open("assistant", { threadId: page.threadId });
  succeeded(await reloaded.run());
  await reloaded.agrees();
}

export async function stopping_twice_is_the_same_as_once(stage) {
  const page = stage.open("assistant");
  let stops;
  const shown = await page.say("/tokens 2000 every 5", {}, {
    onEvent: (event) => {
      if (event.type === "TEXT_MESSAGE_CONTENT") stops ??= Promise.all([page.stop(), page.stop()]);
    },
  });
  stopped(stage, shown);
  const said = (await stops).map((answer) => answer.cancelled).sort();
  deepEqual(said, [false, true]);
  equal((await page.stop()).cancelled, false);
}

export async function a_question_of_a_stopped_turn_is_closed(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  asked(await page.say(`email ${address} about lunch`));
  equal((await page.stop()).cancelled, true);

  // The page does not know; its answer reaches nobody, and takes the question off its list.
  const late = await page.answer({ approved: true });
  stopped(stage, late);
  deepEqual(page.agent.pendingInterrupts, []);
  deepEqual(stage.sentTo(address), []);
  succeeded(await page.say("/say go on"));
  equal(page.reply, "go on");
  await page.agrees();
}
