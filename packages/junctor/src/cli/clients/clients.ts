import { existsSync } from "node:fs";
import { parseConfigFile } from "../../config/index.ts";
import { isOfProject } from "../../daemon/index.ts";
import {
  fileOf,
  readClientFile,
  readSection,
  clients,
  clientsAsOf,
  ourName,
  SpliceError,
} from "../../install/index.ts";
import { print, refuseOperands, type Run, toRows } from "../terminal/index.ts";
import { configOf, thisMachine } from "./own-terminal.ts";

interface ClientState {
  readonly id: string;
  readonly title: string;
  readonly file: string;
  readonly state: "installed" | "found" | "missing" | "malformed";
  readonly servers: number;
}

/** `junctor clients` */
export const listClients: Run<"clients"> = async (parsed) => {
  refuseOperands("clients", parsed);
  const states = await Promise.all(clients.map(look));
  const servers = readPlacement(configOf(parsed));
  if (parsed.flags.json) await print(`${JSON.stringify({ asOf: clientsAsOf, clients: states, servers })}\n`);
  else await print(describe(states, servers));
  return 0;
};

async function look(client: (typeof clients)[number]): Promise<ClientState> {
  const { id, title } = client;
  const file = fileOf(client, thisMachine());
  if (!existsSync(file)) return { id, title, file, state: "missing", servers: 0 };
  try {
    const names = Object.keys(await readSection(client, file, readClientFile(file).text));
    const isInstalled = names.includes(ourName);
    return {
      id,
      title,
      file,
      state: isInstalled ? "installed" : "found",
      servers: names.length - (isInstalled ? 1 : 0),
    };
  } catch (error) {
    if (error instanceof SpliceError) return { id, title, file, state: "malformed", servers: 0 };
    throw error;
  }
}

interface Placement {
  readonly name: string;
  readonly workspace: "each" | "shared";
}

/** Which servers of our config have a process for each project. A guess that is wrong would go unnoticed otherwise. */
function readPlacement(file: string): readonly Placement[] {
  if (!existsSync(file)) return [];
  const { text } = readClientFile(file);
  const [one, other] = ["/one", "/other"].map(
    (folder) => parseConfigFile(file, text, process.env, folder).servers,
  );
  return (one ?? []).map((server) => {
    const isEach = isOfProject(
      server,
      other?.find(({ name }) => name === server.name),
    );
    return { name: server.name, workspace: isEach ? "each" : "shared" };
  });
}

function describe(states: readonly ClientState[], servers: readonly Placement[]): string {
  const rows = states.map(({ id, state, servers: count, file }) => [
    id,
    state,
    state === "missing" || state === "malformed" ? "" : count === 1 ? "1 server" : `${count} servers`,
    file,
  ]);
  const placed = servers.map(({ name, workspace }) => [
    name,
    workspace === "each" ? "a process for each project" : "one process",
  ]);
  const lines = [
    ...toRows(rows),
    ...(placed.length === 0 ? [] : ["", "Servers of our config:", ...toRows(placed)]),
  ];
  return lines.map((line) => `${line}\n`).join("");
}
