import { expect, test } from "vitest";
import { RawJson } from "../../../core/src/json/raw.ts";
import { type CallContext, createCallContext } from "../../../core/src/provider/context.ts";
import { Visits } from "./on-behalf.ts";

const done = (elicitationId: unknown): Parameters<Visits["take"]>[0] => ({
  kind: "notification",
  method: "notifications/elicitation/complete",
  params: RawJson.fromValue({ elicitationId }),
});

/** Has callers be sent to pages by a question. */
function begin(): { visits: Visits; heard: string[]; send: (owner: object, id: unknown) => Promise<void> } {
  const visits = new Visits();
  const heard: string[] = [];
  const asking = async (context: CallContext): Promise<void> => {
    const id = context.meta?.at("id")?.value;
    const params = { mode: "url", message: "?", url: "https://example.com", elicitationId: id };
    await context.ask?.({ method: "elicitation/create", params }, context.signal);
  };
  const send = async (owner: object, id: unknown): Promise<void> => {
    const context = createCallContext({
      session: owner,
      meta: RawJson.fromValue({ id }),
      ask: async () => RawJson.fromValue({ action: "accept" }),
      visited: (visited) => void heard.push(visited),
    });
    await visits.noteVisits(context, asking);
  };
  return { visits, heard, send };
}

test("the oldest of too many pages is forgotten", async () => {
  const { visits, heard, send } = begin();
  const owner = {};
  for (let page = 0; page < 300; page++) await send(owner, `p${page}`);
  for (let page = 0; page < 300; page++) visits.take(done(`p${page}`));
  expect(heard).toEqual(Array.from({ length: 256 }, (_, page) => `p${page + 44}`));
});

test.each([7, null, undefined, "x".repeat(1025)])("a page cannot be called %j", async (id) => {
  const { visits, heard, send } = begin();
  await send({}, id);
  expect(visits.take(done(id))).toBe(true);
  expect(heard).toEqual([]);
});

test("a page the same caller is sent to twice is told once", async () => {
  const { visits, heard, send } = begin();
  const owner = {};
  await send(owner, "p");
  await send(owner, "p");
  visits.take(done("p"));
  visits.take(done("p"));
  expect(heard).toEqual(["p"]);
});

test("other notifications are not taken", () => {
  expect(new Visits().take({ kind: "notification", method: "notifications/x", params: undefined })).toBe(
    false,
  );
});
