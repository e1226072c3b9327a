import { join } from "node:path";

/** The machine on which clients are looked for. */
export interface ClientPlace {
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly env: { readonly [name: string]: string | undefined };
}

/** Which references to variables a client fills in. */
export type VariableStyle =
  /** None: a `${` is just text. */
  | "none"
  /** `${V}`, `${V:-default}`, `${env:V}`: like ours. */
  | "braces"
  /** `$V` and `${V}`. */
  | "dollar"
  /** `{env:V}`. */
  | "curly";

/** How a client writes down one of its servers. */
type EntryStyle = "plain" | "vscode" | "codex" | "goose" | "opencode" | "gemini" | "copilot";

/** One program that starts MCP servers, and where it keeps them. */
export interface ClientProgram {
  readonly id: string;
  readonly title: string;
  readonly format: "json" | "toml" | "yaml";
  /** The key of the object with the servers. */
  readonly section: string;
  readonly entry: EntryStyle;
  readonly variables: VariableStyle;
  /** The user's file: the first that exists, else the first. */
  readonly files: (place: ClientPlace) => readonly string[];
  /** The file of a project, from its folder. */
  readonly project?: string;
  /** The program that edits the file, where nothing else should: it is rewritten all the time. */
  readonly command?: string;
  /** Other names on the command line. */
  readonly aliases?: readonly string[];
}

/** When the table was last compared with the documentation of each client. */
export const clientsAsOf = "2026-11-17";

/** The folder for settings of programs: `~/.config`, `~/Library/Application Support` or `%APPDATA%`. */
function settings({ home, platform, env }: ClientPlace, ...parts: readonly string[]): string {
  if (platform === "darwin") return join(home, "Library", "Application Support", ...parts);
  if (platform === "win32") return join(env["APPDATA"] ?? join(home, "AppData", "Roaming"), ...parts);
  return join(home, ".config", ...parts);
}

/** `~/.config` also on macOS. */
function config(
  { home, platform, env }: ClientPlace,
  windows: readonly string[],
  ...parts: readonly string[]
): string {
  if (platform === "win32") return join(env["APPDATA"] ?? join(home, "AppData", "Roaming"), ...windows);
  return join(home, ".config", ...parts);
}

const clineFile = ["globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json"];

export const clients: readonly ClientProgram[] = [
  {
    id: "claude-code",
    title: "Claude Code",
    format: "json",
    section: "mcpServers",
    entry: "plain",
    variables: "braces",
    files: ({ home, env }) => [join(env["CLAUDE_CONFIG_DIR"] ?? home, ".claude.json")],
    project: ".mcp.json",
    command: "claude",
    aliases: ["claude"],
  },
  {
    id: "claude-desktop",
    title: "Claude Desktop",
    format: "json",
    section: "mcpServers",
    entry: "plain",
    variables: "none",
    files: (place) => [settings(place, "Claude", "claude_desktop_config.json")],
  },
  {
    id: "cursor",
    title: "Cursor",
    format: "json",
    section: "mcpServers",
    entry: "plain",
    variables: "braces",
    files: ({ home }) => [join(home, ".cursor", "mcp.json")],
    project: join(".cursor", "mcp.json"),
  },
  {
    id: "vscode",
    title: "VS Code",
    format: "json",
    section: "servers",
    entry: "vscode",
    variables: "braces",
    files: (place) => [
      settings(place, "Code", "User", "mcp.json"),
      join(place.home, ".vscode-server", "data", "User", "mcp.json"),
    ],
    project: join(".vscode", "mcp.json"),
    aliases: ["code"],
  },
  {
    id: "copilot",
    title: "Copilot CLI",
    format: "json",
    section: "mcpServers",
    entry: "copilot",
    variables: "none",
    files: ({ home }) => [join(home, ".copilot", "mcp-config.json")],
  },
  {
    id: "codex",
    title: "Codex",
    format: "toml",
    section: "mcp_servers",
    entry: "codex",
    variables: "none",
    files: ({ home, env }) => [join(env["CODEX_HOME"] ?? join(home, ".codex"), "config.toml")],
    project: join(".codex", "config.toml"),
  },
  {
    id: "gemini",
    title: "Gemini CLI",
    format: "json",
    section: "mcpServers",
    entry: "gemini",
    variables: "dollar",
    files: ({ home }) => [join(home, ".gemini", "settings.json")],
    project: join(".gemini", "settings.json"),
  },
  {
    id: "windsurf",
    title: "Windsurf (Devin Desktop)",
    format: "json",
    section: "mcpServers",
    entry: "plain",
    variables: "braces",
    files: (place) => [
      config(place, ["devin", "mcp_config.json"], "devin", "mcp_config.json"),
      join(place.home, ".codeium", "windsurf", "mcp_config.json"),
    ],
    project: join(".devin", "mcp_config.json"),
    aliases: ["devin"],
  },
  {
    id: "zed",
    title: "Zed",
    format: "json",
    section: "context_servers",
    entry: "plain",
    variables: "none",
    files: (place) => [config(place, ["Zed", "settings.json"], "zed", "settings.json")],
    project: join(".zed", "settings.json"),
  },
  {
    id: "goose",
    title: "Goose",
    format: "yaml",
    section: "extensions",
    entry: "goose",
    variables: "none",
    files: (place) => [config(place, ["Block", "goose", "config", "config.yaml"], "goose", "config.yaml")],
  },
  {
    id: "cline",
    title: "Cline",
    format: "json",
    section: "mcpServers",
    entry: "plain",
    variables: "braces",
    files: (place) => [
      settings(place, "Code", "User", ...clineFile),
      join(place.home, ".vscode-server", "data", "User", ...clineFile),
      join(place.home, ".cline", "data", "settings", "cline_mcp_settings.json"),
    ],
  },
  {
    id: "opencode",
    title: "opencode",
    format: "json",
    section: "mcp",
    entry: "opencode",
    variables: "curly",
    files: ({ home }) =>
      ["opencode.json", "opencode.jsonc"].map((name) => join(home, ".config", "opencode", name)),
    project: "opencode.json",
  },
];
