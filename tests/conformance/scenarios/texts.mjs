// Characters that break framings, encoders and pages.

import { equal } from "node:assert/strict";
import { of, succeeded } from "../page.mjs";

const AWKWARD = "a\u2028b\u2029c\u0085d\u0000e\rf\u{1F600}g \u00e9 \ufeff";
const HALF = "\ud83d";
const REPLACED = "\ufffd";

export async function line_separators_and_emoji_come_through(stage) {
  const page = stage.open("assistant");
  succeeded(await page.say(`/say ${JSON.stringify(AWKWARD)}`));
  equal(page.reply, AWKWARD);
  await page.agrees();
}

export async function awkward_characters_come_through_a_tool(stage) {
  const page = stage.open("plain");
  const shown = await page.say(`/tool echo ${JSON.stringify({ text: AWKWARD })}\n/then /say ok`);
  succeeded(shown);
  equal(of(shown, "TOOL_CALL_RESULT")[0].content, AWKWARD);
  await page.agrees();
}

export async function an_emoji_split_over_two_deltas_is_whole(stage) {
  const page = stage.open("assistant");
  succeeded(await page.say("/split \u{1F600}"));
  equal(page.reply, "\u{1F600}");
  await page.agrees();
}

export async function half_an_emoji_from_the_model_is_replaced(stage) {
  const page = stage.open("assistant");
  // Escaped twice: the client sends well-formed text, the model makes the half.
  succeeded(await page.say('/say "\\ud83d"\n/say "x\\ude00y"'));
  equal(page.reply, `${REPLACED}\nx${REPLACED}y`);
  await page.agrees();
}

export async function half_an_emoji_in_a_tools_result_is_replaced(stage) {
  const page = stage.open("plain");
  const shown = await page.say('/tool echo {"text": "\\ud83d"}');
  succeeded(shown);
  equal(of(shown, "TOOL_CALL_RESULT")[0].content, REPLACED);
  await page.agrees();
}

export async function half_an_emoji_from_the_client_is_replaced(stage) {
  const page = stage.open("assistant");
  const shown = await page.say(`half ${HALF} a smile`, {
    context: [{ description: `d${HALF}`, value: `v${HALF}` }],
  });
  succeeded(shown);
  equal(page.reply.includes(`half ${REPLACED} a smile`), true, page.reply);
  await page.agrees();
  succeeded(await page.say("/say still here"));
  await page.agrees();
}

export async function awkward_characters_of_the_client_come_through(stage) {
  const page = stage.open("assistant");
  succeeded(await page.say(`I say ${AWKWARD} to you`));
  equal(page.reply.includes(AWKWARD), true, JSON.stringify(page.reply));
  await page.agrees();
}
