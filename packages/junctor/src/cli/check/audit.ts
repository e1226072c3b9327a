import { existsSync } from "node:fs";
import { type AuditReport, verifyAudit, findWorkerFiles } from "../../audit/index.ts";
import { parseConfigFile, readConfigText } from "../../config/index.ts";
import { junctor } from "../../invocation/index.ts";
import { parseFoundConfig, usualFiles } from "../config/index.ts";
import { type ParsedOf, print, type Run, toSafeText, UsageError } from "../terminal/index.ts";

/** `junctor audit verify` */
export const audit: Run<"audit"> = async (parsed) => {
  const [word, file, stray] = parsed.operands;
  if (word !== "verify" || stray !== undefined)
    throw new UsageError(`write: ${junctor("audit")} verify [FILE]`);
  const expected = parsed.flags.expect;
  if (expected !== undefined && !/^[0-9a-f]{64}$/.test(expected))
    throw new UsageError("--expect needs the 64 hex digits of a hash");
  const paths = findWorkerFiles(file ?? configuredFile(parsed));
  if (expected !== undefined && paths.length > 1)
    throw new UsageError(`--expect is about one of several files; name it: ${paths.join(", ")}`);
  const reports: AuditReport[] = [];
  for (const path of paths)
    reports.push(
      await verifyAudit(path, expected).catch((error: unknown) => {
        const { code, message } = error as NodeJS.ErrnoException;
        if (code === "ENOENT")
          throw new UsageError(`${path} does not exist; name the file of junctor.audit, or --config FILE`);
        throw code === undefined ? error : new UsageError(`${path} cannot be read: ${message}`);
      }),
    );
  if (parsed.flags.json)
    await print(`${JSON.stringify(reports.length === 1 ? reports[0] : reports, undefined, 2)}\n`);
  else await print(toSafeText(reports.map(describe).join("\n")));
  return reports.every(({ faults }) => faults.length === 0) ? 0 : 1;
};

/** Nothing of the config is used but the path. */
function configuredFile(parsed: ParsedOf<"audit">): string {
  const named = parsed.flags.config;
  const file = named ?? usualFiles.find((name) => existsSync(name));
  if (file === undefined) throw new UsageError("name a file, or a config that has one: --config FILE");
  const { audit: configured } =
    named === undefined ? parseFoundConfig(file) : parseConfigFile(file, readConfigText(file), process.env);
  if (configured === undefined) throw new UsageError(`${file} has no junctor.audit; name a file`);
  return configured.file;
}

function describe({ files, records, unlinked, hash, first, last, faults }: AuditReport): string {
  const faulty = faults.map(({ file, line, kind, message }) => `${file}:${line}: ${kind}: ${message}\n`);
  const old =
    unlinked === 0
      ? ""
      : `${unlinked} records at the beginning have no hash: they were written by an earlier version.\n`;
  const span = first === undefined ? "" : `, from ${first} to ${last}`;
  const name = files.at(-1)?.includes(".worker-") === true ? `${files.at(-1)}: ` : "";
  const head = `${name}${records} records in ${files.length} ${files.length === 1 ? "file" : "files"}${span}\nlast hash: ${hash}\n`;
  const verdict = faults.length === 0 ? "The log is whole.\n" : "The log is not as it was written.\n";
  return `${faulty.join("")}${old}${head}${verdict}`;
}
