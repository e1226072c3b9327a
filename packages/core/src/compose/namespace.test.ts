import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { assertNamespaces, defaultNaming, type Naming, qualify, type Separator } from "./namespace.ts";

const separators: readonly Separator[] = ["__", "_", "-", ".", "/"];
const naming = (separator: Separator): Naming => ({ ...defaultNaming, separator });
const long = "x".repeat(80);

describe("a qualified name", () => {
  test.each<[Separator, string]>([
    ["__", "github__search"],
    ["_", "github_search"],
    ["-", "github-search"],
    [".", "github.search"],
    ["/", "github/search"],
  ])("with the separator %s is %s", (separator, expected) => {
    expect(qualify("github", "search", naming(separator))).toBe(expected);
  });

  test("of 64 characters stays, a longer one is cut to 64 and ends with a hash of the whole", () => {
    const whole = `a__${"x".repeat(61)}`;
    expect(qualify("a", "x".repeat(61), defaultNaming)).toBe(whole);
    const cut = qualify("a", `${"x".repeat(61)}y`, defaultNaming);
    expect(cut).toMatch(/^a__x{52}_[0-9a-f]{8}$/);
    expect(cut).toHaveLength(64);
  });

  test("is the same in every process, for names written into configurations last", () => {
    expect(qualify("github", long, defaultNaming)).toBe(
      "github__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_ea401c6c",
    );
    expect(qualify("github", "get.user", defaultNaming)).toBe("github__get_user_d4235c61");
  });

  test("tells long names apart that differ only in what was cut off", () => {
    const names = new Set(["a", "b", "c"].map((end) => qualify("github", long + end, defaultNaming)));
    expect(names.size).toBe(3);
  });

  test("has only characters every model API takes, and says by a hash that some were replaced", () => {
    expect(qualify("a", "get.user", defaultNaming)).toMatch(/^a__get_user_[0-9a-f]{8}$/);
    expect(qualify("a", "get_user", defaultNaming)).toBe("a__get_user");
    expect(qualify("a", "find😀", defaultNaming)).toMatch(/^a__find__?_[0-9a-f]{8}$/);
  });

  test("with the separators . and / keeps the characters the protocol allows, and no others", () => {
    expect(qualify("a", "get.user/v2", naming("."))).toBe("a.get.user/v2");
    expect(qualify("a", "find it", naming("/"))).toMatch(/^a\/find_it_[0-9a-f]{8}$/);
    expect(qualify("a", "😀".repeat(40), naming("."))).toMatch(/^a\._+_[0-9a-f]{8}$/);
  });

  test("is valid and within the limit, whatever the tool is called", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...separators),
        fc.stringMatching(/^[A-Za-z0-9]{1,32}$/),
        fc.string({ unit: "binary", maxLength: 150 }),
        (separator, namespace, name) => {
          const qualified = qualify(namespace, name, naming(separator));
          const isForModels = separator !== "." && separator !== "/";
          expect(qualified).toMatch(isForModels ? /^[A-Za-z0-9_-]{1,64}$/ : /^[A-Za-z0-9_./-]{1,64}$/);
          expect(qualified.startsWith(namespace + separator)).toBe(true);
        },
      ),
    );
  });
});

describe("a namespace", () => {
  const assert = (namespaces: readonly string[], options: Partial<Naming> = {}) => {
    return () => assertNamespaces(namespaces, { ...defaultNaming, ...options });
  };

  test.each(["a", "github", "my-server", "my_server", "0", "v2.1", "x".repeat(32)])(
    "may be %s",
    (namespace) => {
      expect(assert([namespace])).not.toThrow();
    },
  );

  test.each(["", "_a", ".a", "-", "a b", "é", "a/b", "__proto__", "x".repeat(33)])(
    "may not be %j",
    (namespace) => {
      expect(assert([namespace])).toThrow(
        `${JSON.stringify(namespace)} cannot be a namespace: use up to 32 of the characters`,
      );
    },
  );

  test.each<[Separator, string]>([
    ["__", "a__b"],
    ["__", "a_"],
    ["__", "a."],
    ["__", "a._b"],
    ["_", "a_b"],
    ["_", "a.b"],
    ["-", "a-b"],
    [".", "a.b"],
    [".", "a."],
  ])("ambiguous with the separator %s, such as %s, is refused", (separator, namespace) => {
    expect(assert([namespace], { separator })).toThrow(
      `The namespace "${namespace}" is ambiguous with the separator "${separator}": rename it, or choose another`,
    );
  });

  test("that gives the same names as another is refused", () => {
    expect(assert(["a.b", "c", "a_b"])).toThrow(
      'The namespaces "a.b" and "a_b" give the same names: rename one of them',
    );
    expect(assert(["a.b", "a_b"], { separator: "/" })).not.toThrow();
  });

  test("needs room: a limit that would cut namespaces off is refused", () => {
    expect(assert(["a"], { maxLength: 31 })).toThrow("maxLength must be at least 32");
    expect(assert(["a"], { maxLength: 32 })).not.toThrow();
  });

  test("owns its names alone: no two accepted ones ever give the same", () => {
    const namespace = fc.string({
      unit: fc.constantFrom("a", "b", "_", "-", "."),
      minLength: 1,
      maxLength: 5,
    });
    const name = fc.string({ unit: fc.constantFrom("a", "b", "_", "-", ".", "é"), maxLength: 5 });
    fc.assert(
      fc.property(
        fc.constantFrom(...separators),
        fc.tuple(namespace, name),
        fc.tuple(namespace, name),
        (separator, [space1, name1], [space2, name2]) => {
          fc.pre(space1 !== space2);
          try {
            assertNamespaces([space1, space2], naming(separator));
          } catch {
            return;
          }
          expect(qualify(space1, name1, naming(separator))).not.toBe(
            qualify(space2, name2, naming(separator)),
          );
        },
      ),
      { numRuns: runs(5000) },
    );
  });
});
