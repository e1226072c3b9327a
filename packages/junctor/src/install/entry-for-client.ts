import type { ClientProgram, ClientPlace } from "./clients.ts";

/** How our program is started: a launcher, or on Windows Node itself with its script. */
export interface Launcher {
  readonly command: string;
  readonly args: readonly string[];
}

/** The name of our entry in the files of clients. */
export const ourName = "junctor";

/** Whether an entry of a client starts us, under whatever name. */
export function isOurEntry(value: unknown): boolean {
  const text = JSON.stringify(value) ?? "";
  return text.includes('"attach"') && text.includes("junctor");
}

/** Our entry, as a client writes down its servers. */
export function toClientEntry(
  client: ClientProgram,
  launcher: Launcher,
  place: Pick<ClientPlace, "home" | "platform">,
): object {
  const command = client.entry === "vscode" ? toPortable(launcher.command, place) : launcher.command;
  const args = [...launcher.args, "attach", "--client", client.id];
  switch (client.entry) {
    case "vscode":
      return { type: "stdio", command, args };
    case "copilot":
      return { type: "local", command, args, tools: ["*"] };
    case "opencode":
      return { type: "local", command: [command, ...args], enabled: true };
    case "goose":
      return { name: ourName, type: "stdio", cmd: command, args, enabled: true, envs: {}, timeout: 300 };
    case "plain":
    case "codex":
    case "gemini":
      return { command, args };
  }
}

/** VS Code syncs its files to other machines, where the home folder may be another. */
function toPortable(command: string, { home, platform }: Pick<ClientPlace, "home" | "platform">): string {
  const isBelow = platform !== "win32" && command.startsWith(`${home}/`);
  return isBelow ? `\${userHome}${command.slice(home.length)}` : command;
}
