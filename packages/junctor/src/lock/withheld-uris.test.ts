import { expect, test } from "vitest";
import { createWithholds } from "./pins.ts";

test("what is held back is held back in every spelling and every case, and what is approved is not", () => {
  const approved = [{ uri: "file:///Open", name: "open" }];
  const lists = { tools: [], prompts: [], resources: approved, templates: [] };
  const isHeld = createWithholds(lists, ["file:///Secret", "vault://Keys/{id}", "file:///open"]);
  for (const uri of [
    "file:///Secret",
    "file:///secret",
    "FILE:///SECRET",
    "file:///%73ECRET",
    "file:///open",
  ])
    expect([uri, isHeld(uri)]).toEqual([uri, true]);
  for (const uri of ["vault://Keys/1", "vault://keys/1", "VAULT://KEYS/a"])
    expect([uri, isHeld(uri)]).toEqual([uri, true]);
  for (const uri of ["file:///Open", "file:///other", "vault://others/1"])
    expect([uri, isHeld(uri)]).toEqual([uri, false]);
});
