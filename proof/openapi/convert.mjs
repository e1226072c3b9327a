// Makes tools of one description, and holds them to what every client takes.

import { fitTool } from "@junctor/core/fit";
import { createCallContext, fromOpenApi, RawJson } from "junctor";

export const anyone = { capabilities: {}, revision: "2026-07-28" };

/** `fault` is why the description is no set of tools that every client takes. */
export async function convert(file, isChecked = true) {
  const leftOut = [];
  try {
    const onWarning = (text) => void leftOut.push(text);
    const registry = await fromOpenApi(file, { deprecated: true, onWarning });
    const { items } = await registry.list("tools", createCallContext(anyone));
    const fault = isChecked ? await findFault(items) : undefined;
    const isEmpty = items.length === 0 && leftOut.length > 0;
    return { tools: items.length, leftOut, fault: fault ?? (isEmpty ? leftOut[0] : undefined) };
  } catch (error) {
    return { tools: 0, leftOut, fault: error.message };
  }
}

async function findFault(tools) {
  if (new Set(tools.map(({ name }) => name.toLowerCase())).size < tools.length) return "names are not unique";
  const terms = { isLegacy: true, isMirroring: true, budget: { leftMs: Number.POSITIVE_INFINITY } };
  for (const tool of tools) {
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(tool.name)) return `the name ${tool.name}`;
    const wrong = Object.keys(tool.inputSchema.properties ?? {}).find(
      (key) => !/^[A-Za-z0-9_.-]{1,64}$/.test(key),
    );
    if (wrong !== undefined) return `${tool.name}: the argument ${wrong}`;
    const fit = await fitTool(RawJson.fromValue(tool), terms);
    if (fit.kind === "unfit") return `${tool.name}: ${fit.reason}`;
    if (fit.notes.length > 0) return `${tool.name}: ${fit.notes[0].path} ${fit.notes[0].text}`;
  }
  return undefined;
}
