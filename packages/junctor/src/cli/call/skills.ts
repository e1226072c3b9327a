import { note, print, printBytes, type Run, toSafeLine, toSafeText, UsageError } from "../terminal/index.ts";
import { runListing } from "./listing.ts";

/** `junctor skills` */
export const skills: Run<"skills"> = (parsed) =>
  runListing(parsed, {
    name: "skills",
    verb: "read",
    operands: "URI [FILE]",
    what: ["skill", "skills"],
    list: (client) => client.skills.listSkills(),
    toCells: ({ uri, frontmatter, resources }) => [
      uri,
      resources === "dynamic"
        ? "dynamic"
        : `${resources.length} ${resources.length === 1 ? "file" : "files"}`,
      frontmatter.description,
    ],
    read: async (client, [uri = "", file, stray], { isJson, signal }) => {
      if (stray !== undefined)
        throw new UsageError(`read takes one file at a time, but got ${JSON.stringify(stray)} as well`);
      const skill = await client.skills.load(uri, { signal });
      if (isJson && file === undefined) {
        const { text, frontmatter, origin, isVerified } = skill;
        return print(
          `${JSON.stringify({ uri: skill.uri, origin, isVerified, frontmatter, text }, undefined, 2)}\n`,
        );
      }
      if (!skill.isVerified)
        await note("junctor: this skill has no digests, so its files cannot be checked\n");
      const content = file === undefined ? skill.text : await skill.read(file, { signal });
      if (isJson) {
        const text =
          typeof content === "string" ? { text: content } : { blob: Buffer.from(content).toString("base64") };
        return print(`${JSON.stringify({ uri: skill.uri, file, ...text }, undefined, 2)}\n`);
      }
      if (typeof content !== "string") return printBytes(content);
      if (process.stdout.isTTY) await note(`From ${toSafeLine(skill.origin)}\n`);
      return print(process.stdout.isTTY ? toSafeText(content) : content);
    },
  });
