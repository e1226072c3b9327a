// The process of one row: `node host.mjs NAME full|short`. Its last message to the parent is the lines of the row.

import type { Line, Row, Scale } from "./lib/row.ts";

const [, , name = "", scale = "short"] = process.argv;
const { row } = (await import(new URL(`rows/${name}.mjs`, import.meta.url).href)) as { readonly row: Row };

const lines: readonly Line[] = await row.run(scale as Scale);
process.send?.({ lines }, () => process.exit(0));
