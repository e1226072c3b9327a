import { dirname, resolve } from "node:path";
import {
  createConfigSchema,
  listSettings,
  readConfigText,
  type Setting,
  sourceOfFiles,
} from "../../config/index.ts";
import { findConfigFile, usualFiles } from "../config/index.ts";
import { type Command, type Parsed, print, toSafeText, UsageError } from "../terminal/index.ts";

/** `junctor config` */
export const config: Command = {
  name: "config",
  summary: "Show a config as it is understood, or print the JSON Schema that editors complete a config by.",
  operands: "show|schema",
  flags: {
    config: { value: "FILE", help: `the config (${usualFiles.join(", ")} of this folder)` },
    all: { help: "also the settings of which the config says nothing" },
    json: { help: "every setting as JSON: path, value, from, line, variables" },
    "unsafe-config": { help: "read a config that others may write" },
  },
  examples: [
    "junctor config show                      what the config says, each setting with its line and variables",
    "junctor config show --all                also every default",
    "junctor config schema > junctor.schema.json",
  ],
  run: async (parsed) => {
    const [word, stray] = parsed.operands;
    if (stray !== undefined || (word !== "show" && word !== "schema"))
      throw new UsageError("write: junctor config show, or junctor config schema");
    if (word === "schema") await print(`${JSON.stringify(createConfigSchema(), undefined, 2)}\n`);
    else await show(parsed);
    return 0;
  },
};

async function show(parsed: Parsed): Promise<void> {
  // Parsing reads the files and asks the keychain that the config names, so a person must have agreed to it.
  const opened = await findConfigFile(parsed);
  if (opened === undefined) throw new UsageError("there is no config in this folder; name it: --config FILE");
  const { file } = opened;
  const source = { file, env: process.env, folder: dirname(resolve(file)), ...sourceOfFiles };
  const settings = listSettings(readConfigText(file), source);
  if (parsed.has("json")) {
    await print(`${JSON.stringify({ file, settings }, undefined, 2)}\n`);
    return;
  }
  const shown = parsed.has("all") ? settings : settings.filter(({ from }) => from !== "default");
  await print(toSafeText(`${[file, ...shown.map(describe)].join("\n")}\n`));
}

function describe({ path, value, from, line, variables = [], isForeign }: Setting): string {
  const origin = [
    line === undefined ? "default" : `line ${line}`,
    ...(from === "defaults" ? ["of junctor.defaults"] : []),
    ...(variables.length === 0 ? [] : [`variable ${variables.join(", ")}`]),
    ...(isForeign ? ["a key of other clients"] : []),
  ];
  return `  ${path} = ${JSON.stringify(value)}  (${origin.join(", ")})`;
}
