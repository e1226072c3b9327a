import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { commandNames } from "../packages/junctor/src/cli/terminal/commands.ts";
import { invocation, junctor } from "../packages/junctor/src/invocation/index.ts";
import { readSource, readSourceGraph, root } from "./source-graph.ts";

const names = [...commandNames, "help"].join("|");
/** `junctor ${name}` counts too; `junctor ${version}` is not a command. */
const command = new RegExp(
  `(?<![\\w./-])junctor (?:(?:${names})\\b|\\$\\{(?!(?:\\w+\\.)?(?:version|build|side)\\b|String))`,
);

/** Texts in the source that are not messages: what shells run, and what pages of reference are made of. */
const others = [
  /cli\/clients\/completion\.ts$/,
  /core\/src\/errors\/table\.ts$/,
  /junctor\/src\/admin\/answers\.ts$/,
  /junctor\/src\/config\/\w+-rows\.ts$/,
];

test("every message writes a command by the one function that knows how it is typed", () => {
  const wrong = [...readSourceGraph().keys()]
    .filter((file) => !others.some((other) => other.test(file)))
    .flatMap((file) =>
      withoutComments(readSource(file))
        .split("\n")
        .filter((line) => command.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
  expect(wrong).toEqual([]);
});

describe("no page and no message fetches a package of this name from the registry", () => {
  const pages = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    ...["docs", "examples", "packages/junctor", "packages/server", "packages/client"].flatMap(pagesIn),
  ];

  test.each(pages)("%s", (page) => {
    expect(fetching(readFileSync(join(root, page), "utf8"))).toEqual([]);
  });

  test("the source", () => {
    const wrong = [...readSourceGraph().keys()].flatMap((file) => fetching(readSource(file)));
    expect(wrong).toEqual([]);
  });

  /** Ways to run junctor that ask the registry. */
  function fetching(text: string): readonly string[] {
    return (
      text.match(
        /\b(?:npx(?: -y| --yes)?|npm (?:exec|x)(?: -y| --yes)?(?: --)?|pnpm dlx|bunx|yarn dlx) junctor\b/g,
      ) ?? []
    );
  }
});

test("the function writes the command as it is typed here", () => {
  expect([`${invocation} check`, "junctor check"]).toContain(junctor("check"));
});

function withoutComments(text: string): string {
  return text.replaceAll(/^\s*(?:\/\*\*?.*?\*\/|\/\/.*?$)/gms, "");
}

function pagesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md") && !/(?:^|[/\\])(?:node_modules|dist)[/\\]/.test(file))
    .map((file) => join(folder, file));
}
