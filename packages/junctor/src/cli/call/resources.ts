import { Buffer } from "node:buffer";
import { UsageError, type Command, print, printBytes, toSafeText } from "../terminal/index.ts";
import { listingFlags, runListing } from "./listing.ts";

/** `junctor resources` */
export const resources: Command = {
  name: "resources",
  summary: "List the resources and resource templates of a server, or read one resource.",
  operands: "[URL|NAME] | read URI",
  takesCommand: true,
  flags: listingFlags,
  examples: [
    "junctor resources                                     of the server that npm start runs",
    "junctor resources read file:///notes.md --server http://127.0.0.1:8080/mcp",
    "junctor resources read img://logo -- node server.mjs > logo.png",
    "junctor resources --config .mcp.json                  of all servers of a config",
  ],
  run: (parsed) =>
    runListing(parsed, {
      name: "resources",
      verb: "read",
      operands: "URI",
      what: ["resource or template", "resources and templates"],
      list: async (client) => [...(await client.listResources()), ...(await client.listResourceTemplates())],
      toCells: (item) => [
        "uriTemplate" in item ? item.uriTemplate : item.uri,
        item.mimeType ?? "",
        item.title ?? item.name,
        item.description ?? "",
      ],
      read: async (client, [uri = "", stray], { isJson, signal }) => {
        if (stray !== undefined)
          throw new UsageError(`read takes one URI, but got ${JSON.stringify(stray)} as well`);
        const result = await client.readResource(uri, { signal });
        if (isJson) return print(`${JSON.stringify(result, undefined, 2)}\n`);
        for (const content of result.contents) {
          if ("blob" in content) await printBytes(Buffer.from(content.blob, "base64"));
          else await print(process.stdout.isTTY ? `${toSafeText(content.text)}\n` : content.text);
        }
      },
    }),
};
