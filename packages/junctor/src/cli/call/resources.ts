import { Buffer } from "node:buffer";
import { print, printBytes, type Run, toSafeText, UsageError } from "../terminal/index.ts";
import { runListing } from "./listing.ts";

/** `junctor resources` */
export const resources: Run<"resources"> = (parsed) =>
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
  });
