import { dirname, resolve } from "node:path";
import {
  createConfigSchema,
  listSettings,
  readConfigText,
  type Setting,
  sourceOfFiles,
} from "../../config/index.ts";
import { junctor } from "../../invocation/index.ts";
import { findConfigFile } from "../config/index.ts";
import { type ParsedOf, print, type Run, toSafeText, UsageError } from "../terminal/index.ts";

/** `junctor config` */
export const config: Run<"config"> = async (parsed) => {
  const [word, stray] = parsed.operands;
  if (stray !== undefined || (word !== "show" && word !== "schema"))
    throw new UsageError(`write: ${junctor("config")} show, or ${junctor("config")} schema`);
  if (word === "schema") await print(`${JSON.stringify(createConfigSchema(), undefined, 2)}\n`);
  else await show(parsed);
  return 0;
};

async function show(parsed: ParsedOf<"config">): Promise<void> {
  // Parsing reads the files and asks the keychain that the config names, so a person must have agreed to it.
  const opened = await findConfigFile(parsed);
  if (opened === undefined) throw new UsageError("there is no config in this folder; name it: --config FILE");
  const { file } = opened;
  const source = { file, env: process.env, folder: dirname(resolve(file)), ...sourceOfFiles };
  const settings = listSettings(readConfigText(file), source);
  if (parsed.flags.json) {
    await print(`${JSON.stringify({ file, settings }, undefined, 2)}\n`);
    return;
  }
  const shown = parsed.flags.all ? settings : settings.filter(({ from }) => from !== "default");
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
