import type { Flag } from "./command.ts";

/** How a config is named. */
export const configFlag: Flag = {
  value: "FILE",
  help: "a file with mcpServers or servers, as Claude, Cursor or VS Code write it",
};
