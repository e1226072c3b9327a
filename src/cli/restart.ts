import { guardVariable } from "../transports/guardian.ts";
import { askAdmin, chooseAdmin } from "./admin-client.ts";
import { type Command, UsageError } from "./command.ts";
import { note, print } from "./print.ts";
import { gatewayFlags } from "./status.ts";
import { toSafeLine } from "./terminal-text.ts";

/** `junctor restart` */
export const restart: Command = {
  name: "restart",
  summary: "Have a running gateway start one of its servers anew.",
  operands: "NAME",
  flags: gatewayFlags,
  examples: ["junctor restart github"],
  run: async (parsed) => {
    const [name, more] = parsed.operands;
    if (name === undefined || more !== undefined)
      throw new UsageError("restart needs the name of one server; junctor status lists them");
    // A server that may run commands could run this one.
    if (process.env[guardVariable] !== undefined)
      throw new UsageError(
        "a server of a gateway cannot restart others; run this from a terminal of your own",
      );
    const { socket } = await chooseAdmin(parsed.valueOf("config"), parsed.valueOf("pid"));
    const path = `/api/servers/${encodeURIComponent(name)}/restart`;
    const { status, trouble } = (await askAdmin(socket, "POST", path, {})) as {
      readonly status: string;
      readonly trouble?: string;
    };
    if (status === "up") await print(`${toSafeLine(name)} is up\n`);
    else await note(`junctor: ${toSafeLine(`${name} is ${status}: ${trouble ?? ""}`)}\n`);
    return status === "up" ? 0 : 1;
  },
};
