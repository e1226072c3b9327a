import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, expect, test } from "vitest";
import { createDaemonHome, type DaemonHome, notedServers } from "../support/daemon-home.ts";
import { bin } from "../support/junctor-bin.ts";

const isThere = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));

/** What a person types before the Tab, and the word that the shell makes of it. */
const typed = [
  ["junctor unin", "uninstall"],
  ["junctor install cu", "cursor"],
  ["junctor disable no", "notes"],
  ["junctor call notes__va", "notes__value"],
  ["junctor call notes__value na", "name="],
] as const;

/** The command that starts each shell without a person's settings, and the lines that have it complete. */
const shells: { readonly [name: string]: { readonly start: string; readonly lines: readonly string[] } } = {
  bash: { start: "bash --norc --noprofile -i", lines: ["bind 'set enable-bracketed-paste off'"] },
  zsh: { start: "zsh -f -i", lines: ["autoload -Uz compinit", "compinit -u -D"] },
};

describe.runIf(process.platform === "linux")("completion in a real shell", () => {
  for (const [name, shell] of Object.entries(shells)) {
    const missing = [name, "script"].filter((program) => !isThere(program));
    test.skipIf(missing.length > 0)(
      `${name} completes commands, clients, servers, tools and arguments${why(missing)}`,
      async () => {
        await using home = createDaemonHome({ mcpServers: notedServers(["notes"]) });
        const env = await prepare(home);
        const child = spawn("script", ["-qec", shell.start, "/dev/null"], { cwd: home.folder, env });
        let seen = "";
        child.stdout
          .setEncoding("utf8")
          .on("data", (text: string) => (seen += text.replaceAll("\u0007", "")));
        child.stderr.resume();
        const ended = once(child, "close");
        const lines = ["PS1='> '", ...shell.lines, `source ${writeScript(home, name, env)}`, "echo rea''dy"];
        child.stdin.write(lines.map((line) => `${line}\n`).join(""));
        await expect.poll(() => seen).toContain("ready");
        for (const [words, whole] of typed) {
          seen = "";
          child.stdin.write(`${words}\t`);
          await expect.poll(() => seen).toContain(whole);
          // Empties the line.
          child.stdin.write("\u0015");
        }
        child.stdin.write("exit\n");
        child.stdin.end();
        await ended;
      },
    );
  }

  test.skipIf(!isThere("bash"))("bash runs nothing that a name says, and quotes it", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["notes"]) });
    const env = await prepare(home);
    const names = ["$(touch ran)", "`touch ran` b", "two words", "three\nlines"];
    const servers = Object.fromEntries(names.map((each) => [each, { command: "x" }]));
    writeFileSync(join(home.folder, ".mcp.json"), JSON.stringify({ mcpServers: servers }));
    const code = `source ${writeScript(home, "bash", env)}
COMP_WORDS=(junctor disable ""); COMP_CWORD=2; _junctor; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = spawnSync("bash", ["--norc", "-c", code], { cwd: home.folder, env, encoding: "utf8" });
    expect(existsSync(join(home.folder, "ran"))).toBe(false);
    expect(stdout.trimEnd().split("\n")).toEqual([
      "\\$\\(touch\\ ran\\)",
      "\\`touch\\ ran\\`\\ b",
      "two\\ words",
    ]);
  });

  const missing = ["fish"].filter((program) => !isThere(program));
  test.skipIf(missing.length > 0)(
    `fish completes commands, clients, servers, tools and arguments${why(missing)}`,
    async () => {
      await using home = createDaemonHome({ mcpServers: notedServers(["notes"]) });
      const env = await prepare(home);
      const script = writeScript(home, "fish", env);
      for (const [words, whole] of typed) {
        const code = `source ${script}; complete --do-complete '${words}'`;
        const { stdout } = spawnSync("fish", ["--no-config", "-c", code], {
          cwd: home.folder,
          env,
          encoding: "utf8",
        });
        expect(stdout.split("\n")).toContain(whole);
      }
    },
  );
});

function why(missing: readonly string[]): string {
  return missing.length === 0 ? "" : ` (skipped: ${missing.join(", ")} not installed)`;
}

/** A home whose server was listed once, and an environment in which `junctor` is found. */
async function prepare(home: DaemonHome): Promise<NodeJS.ProcessEnv> {
  const front = home.attach();
  await front.shake();
  await front.call("notes__pid");
  await front.leave();
  // The daemon writes what servers list when it ends.
  await home.junctor("stop");
  await expect.poll(() => home.daemons()).toEqual([]);
  const folder = join(home.folder, "bin");
  mkdirSync(folder);
  const line = `exec '${process.execPath}' '${bin}' "$@"`;
  writeFileSync(join(folder, "junctor"), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  const PATH = `${folder}${delimiter}${process.env["PATH"] ?? ""}`;
  return { ...process.env, ...home.env, PATH, TERM: "xterm" };
}

function writeScript(home: DaemonHome, shell: string, env: NodeJS.ProcessEnv): string {
  const { stdout } = spawnSync("junctor", ["completion", shell], { env, encoding: "utf8" });
  const file = join(home.folder, `completion.${shell}`);
  writeFileSync(file, stdout);
  return file;
}
