import { expect, test } from "vitest";
import type { InputRequired } from "../../../core/src/provider/provider.ts";
import { isParkedState, unwrapState, wrapState } from "./parking.ts";

const asked = (state?: unknown): InputRequired => ({
  kind: "input_required",
  asks: {},
  ...(state === undefined ? {} : { state }),
});

test.each(["opaque", "", 'quotes " and \\ and 🦊', undefined, { parked: "x" }])(
  "%j comes back as it was",
  (state) => {
    const wrapped = wrapState(asked(state), "shop");
    expect(wrapped.keepsAnswers).toBe(false);
    expect(unwrapState({ answers: {}, state: wrapped.state }, "shop")).toEqual({ answers: {}, state });
  },
);

test("a state is refused by another server than the one that gave it", () => {
  const { state } = wrapState(asked("opaque"), "shop");
  expect(() => unwrapState({ answers: {}, state }, "bank")).toThrow(/another server/);
});

test("a server cannot give a state that looks like a parked call", () => {
  expect(isParkedState(wrapState(asked({ parked: "x" }), "shop").state)).toBe(false);
});

test("answers without a state are passed on", () => {
  expect(unwrapState({ answers: {}, state: undefined }, "shop")).toEqual({ answers: {}, state: undefined });
});
