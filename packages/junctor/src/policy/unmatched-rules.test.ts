import { describe, expect, test } from "vitest";
import { createSource, toTools } from "../../../../test/support/fake-source.ts";
import type { GatewayConfig } from "../config/config.ts";
import { parseConfigValue } from "../config/parse-config.ts";
import { findUnmatchedRules } from "./unmatched-rules.ts";

const none = parseConfigValue({ junctor: {} }, { file: "none", env: {} });
const config = (rules: Partial<GatewayConfig>): GatewayConfig => ({ ...none, ...rules });
const tools = toTools("read_file", "write_file", "delete_file");
const messages = (...given: Parameters<typeof findUnmatchedRules>): readonly string[] =>
  findUnmatchedRules(...given).map(({ path, message }) => `${path}: ${message}`);

describe("rules of one server", () => {
  test("that match one of its tools are fine, hidden and denied ones included", () => {
    const rules = {
      allow: ["*_file", "files__*"],
      deny: ["delete_*", "files__write_file"],
      tools: { delete_file: { hide: true } },
    };
    expect(findUnmatchedRules(none, [createSource("files", { tools }, rules)])).toEqual([]);
  });

  test.each([
    [{ deny: ["writ_file"] }, 'deny: "writ_file" matches none of its tools: did you mean write_file?'],
    [{ deny: ["delet_*"] }, 'deny: "delet_*" matches none of its tools: did you mean delete_file?'],
    [
      { tools: { files__write_file: { hide: true } } },
      "tools.files__write_file: names none of its tools: did you mean write_file?",
    ],
    [{ allow: ["*_folder"] }, 'allow: "*_folder" matches none of its tools: correct or remove it'],
    [
      { tools: { raed_file: { name: "read" } } },
      "tools.raed_file: names none of its tools: did you mean read_file?",
    ],
    [{ tools: { "a b": { hide: true } } }, 'tools["a b"]: names none of its tools: correct or remove it'],
  ])("that match nothing are reported with the name that was meant: %j", (rules, message) => {
    expect(messages(none, [createSource("files", { tools }, rules)])).toEqual([
      `junctor.servers.files.${message}`,
    ]);
  });

  test("are not judged before the server is listed", () => {
    const source = createSource("files", {}, { deny: ["write_*"] });
    source.isSettled = false;
    expect(findUnmatchedRules(none, [source])).toEqual([]);
  });
});

describe("rules about the names that callers see", () => {
  const files = createSource("files", { tools }, { tools: { read_file: { name: "read" } } });
  const bare = createSource("bare", { tools: toTools("sum") }, { prefix: false });

  test.each(["files__write_file", "files__*", "*", "read", "sum", "files__file:///etc/*", "s?m", "write_*"])(
    "may match %s",
    (glob) => {
      expect(findUnmatchedRules(config({ deny: [glob] }), [files, bare])).toEqual([]);
    },
  );

  test("may match prompts and resources too", () => {
    const other = createSource("other", { prompts: [{ name: "p" }], resources: [{ name: "r", uri: "x:1" }] });
    expect(findUnmatchedRules(config({ allow: ["other__p", "other__x?1"] }), [other])).toEqual([]);
  });

  test.each([
    ["files__writ_file", "did you mean files__write_file?"],
    ["github__*", "correct or remove it"],
  ])("that match nothing are reported with the name that was meant: %s", (glob, hint) => {
    const message = `${JSON.stringify(glob)} matches nothing that a server lists: ${hint}`;
    const keys = [{ name: "ada", sha256: "", allow: [glob], deny: [] }];
    const limits = { tools: { [glob]: { callsPerMinute: 1 } } };
    expect(messages(config({ deny: [glob], keys, limits }), [files, bare])).toEqual([
      `junctor.deny: ${message}`,
      `junctor.keys.ada.allow: ${message}`,
      `junctor.limits.tools: ${message}`,
    ]);
  });

  test.each(["write_file", "write_*"])(
    "that allow a server's own name %s are reported with the public one",
    (glob) => {
      expect(messages(config({ allow: [glob] }), [files])).toEqual([
        `junctor.allow: "${glob}" matches nothing that a server lists: did you mean files__${glob}?`,
      ]);
    },
  );

  test("that deny an own name are judged once all servers are listed", () => {
    const late = createSource("late", { tools: toTools("drop") });
    late.isSettled = false;
    expect(findUnmatchedRules(config({ deny: ["drop", "drup"] }), [files, late])).toEqual([]);
    late.isSettled = true;
    expect(messages(config({ deny: ["drop", "drup"] }), [files, late])).toEqual([
      'junctor.deny: "drup" matches nothing that a server lists: correct or remove it',
    ]);
  });

  test("are judged once the servers they may be about are listed", () => {
    const late = createSource("late", {});
    late.isSettled = false;
    const rules = config({ deny: ["late__x", "files__nothing"] });
    expect(messages(rules, [files, late])).toEqual([
      'junctor.deny: "files__nothing" matches nothing that a server lists: correct or remove it',
    ]);
    late.isSettled = true;
    expect(findUnmatchedRules(rules, [files, late])).toHaveLength(2);
  });
});
