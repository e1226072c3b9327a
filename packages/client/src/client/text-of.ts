import type { Content } from "@junctor/core/mcp";

/**
 * The text of a result: its text blocks and the texts of embedded resources, a line each. What is not text, such as an image, is left out.
 *
 * @example
 * console.log(textOf(await client.callTool("search", { query: "junctor" })));
 */
export function textOf({ content }: { readonly content: readonly Content[] }): string {
  return content
    .flatMap((block) => {
      if (block.type === "text") return [block.text];
      return block.type === "resource" && "text" in block.resource ? [block.resource.text] : [];
    })
    .join("\n");
}
