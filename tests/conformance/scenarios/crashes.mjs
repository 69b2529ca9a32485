// kill -9, and a start on the same database. Each of these plays against a server of its own.

import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { asked, of, succeeded } from "../page.mjs";

export async function an_answer_after_a_crash_resumes_the_turn(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  const first = await page.say(`email ${address} about lunch`);
  const [question] = asked(first);
  await stage.machine.kill();
  await stage.machine.start();
  const second = await page.answer({ approved: true });
  succeeded(second);
  equal(second.turnId, first.turnId, "one turn");
  deepEqual(of(second, "TOOL_CALL_START"), []);
  equal(of(second, "TOOL_CALL_RESULT")[0].toolCallId, question.toolCallId);
  equal(stage.sentTo(address).length, 1);
  await page.agrees();
}

export async function the_same_answer_again_after_a_crash_counts_once(stage) {
  const page = stage.open("operator");
  const address = stage.someone();
  asked(await page.say(`email ${address} about lunch`));
  const twin = page.twin();
  succeeded(await page.answer({ approved: true }));
  await stage.machine.kill();
  await stage.machine.start();
  succeeded(await twin.answer({ approved: true }));
  equal(stage.sentTo(address).length, 1);
  await twin.agrees();
}

export async function a_text_cut_by_a_crash_ends_when_asked_again(stage) {
  const page = stage.open("assistant");
  const runId = randomUUID();
  let killed;
  let words = 0;
  stage.expectNoise(/console\.error: Agent execution failed/);
  stage.expectNoise(/unhandled:/);
  page.agent.addMessage({ id: randomUUID(), role: "user", content: "/tokens 120 every 10" });
  const twin = page.twin();
  const cut = await page.run({ runId }, {
    onEvent: (event) => {
      if (event.type === "TEXT_MESSAGE_CONTENT" && ++words === 3) killed = stage.machine.kill();
    },
  });
  ok(cut.rejected, "the connection dropped");
  await killed;
  await stage.machine.start();

  const again = await twin.run({ runId });
  succeeded(again);
  equal(again.turnId, cut.turnId, "the run it was");
  equal(twin.reply, Array.from({ length: 120 }, (_, i) => `word${i} `).join(""));
  await twin.agrees();
}
