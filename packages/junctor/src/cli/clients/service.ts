import { existsSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { writePrivateFile } from "../../config/index.ts";
import { junctor } from "../../invocation/index.ts";
import { print, type Run, UsageError } from "../terminal/index.ts";
import { describeLauncher, writeLauncher } from "./install.ts";
import { assertOwnTerminal, configOf } from "./own-terminal.ts";

/** `junctor service` */
export const service: Run<"service"> = async (parsed) => {
  assertOwnTerminal();
  const [act, stray] = parsed.operands;
  if ((act !== "install" && act !== "uninstall") || stray !== undefined)
    throw new UsageError(`write ${junctor("service")} install, or ${junctor("service")} uninstall`);
  const unit = unitFor(process.platform, configOf(parsed));
  if (parsed.flags["dry-run"]) await print(`${unit.file}\n\n${unit.text}`);
  else if (act === "install") {
    writeLauncher();
    writePrivateFile(unit.file, unit.text, 0o644);
    await print(`${unit.file} is written. Start it now:\n\n  ${unit.start}\n`);
  } else if (!existsSync(unit.file)) await print(`${unit.file} does not exist\n`);
  else if (!readFileSync(unit.file, "utf8").includes("junctor"))
    throw new UsageError(`${unit.file} is not ours, and stays`);
  else {
    rmSync(unit.file);
    await print(`${unit.file} is gone. End what still runs:\n\n  ${unit.stop}\n`);
  }
  return 0;
};

interface Unit {
  readonly file: string;
  readonly text: string;
  readonly start: string;
  readonly stop: string;
}

/** The file by which a system starts the daemon. */
function unitFor(platform: NodeJS.Platform, config: string): Unit {
  const { command } = describeLauncher();
  const words = [command, "daemon", "--keep", "--config", config];
  if (platform === "linux")
    return {
      file: join(homedir(), ".config", "systemd", "user", "junctor.service"),
      text: [
        "[Unit]",
        "Description=Junctor: the MCP servers of all clients",
        "",
        "[Service]",
        `ExecStart=${words.map(quoteForSystemd).join(" ")}`,
        "Restart=on-failure",
        "RestartSec=5",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
      ].join("\n"),
      start: "systemctl --user daemon-reload && systemctl --user enable --now junctor",
      stop: "systemctl --user disable --now junctor",
    };
  if (platform === "darwin") {
    const file = join(homedir(), "Library", "LaunchAgents", "junctor.daemon.plist");
    return {
      file,
      text: [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
        '<plist version="1.0"><dict>',
        "  <key>Label</key><string>junctor.daemon</string>",
        `  <key>ProgramArguments</key><array>${words.map((word) => `<string>${escapeXml(word)}</string>`).join("")}</array>`,
        "  <key>RunAtLoad</key><true/>",
        "  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>",
        "</dict></plist>",
        "",
      ].join("\n"),
      start: `launchctl load -w ${file}`,
      stop: "launchctl remove junctor.daemon",
    };
  }
  throw new UsageError(
    `a service can be made for systemd and launchd; here ${junctor("attach")} starts the daemon when it is needed`,
  );
}

/** systemd fills in `%` and `$`, and splits at blanks. */
function quoteForSystemd(word: string): string {
  return `"${word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%").replaceAll("$", "$$$$")}"`;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
