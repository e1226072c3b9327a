import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { root } from "../setup.mjs";
import { isCounted } from "./walk.mjs";

const path = join(root, "docs/architecture.md");
const begin = "<!-- Written by `npm run walk -- --write`. -->";
const end = "<!-- End of what `npm run walk` writes. -->";
const width = 118;

/** Writes the journeys between the markers of docs/architecture.md. */
export function writePage(walked) {
  const { before, after } = readPage();
  writeFileSync(path, `${before}${begin}\n\n${describe(walked)}\n${end}${after}`);
}

/** Whether the page shows these files, in whatever order: where two sides run at once, the order may differ. */
export function isPageTrue(walked) {
  const shown = readPage().section.split(/^```$/m);
  return walked.every(({ files }, index) => {
    const drawn = parseDrawing(shown[2 * index + 1] ?? "");
    return drawn.toSorted().join() === files.filter(isCounted).toSorted().join();
  });
}

function parseDrawing(text) {
  let folder;
  return text.split("\n").flatMap((line) => {
    folder = /^\S+/.exec(line)?.[0] ?? folder;
    const names = line.slice(line.search(/(?<=\s)\S/)).split(/[\s›]+/);
    return names.filter(Boolean).map((name) => `${folder}/${name}.ts`);
  });
}

function readPage() {
  const page = readFileSync(path, "utf8");
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to === -1) throw new Error(`${path} lost its markers: ${begin} … ${end}`);
  return {
    before: page.slice(0, from),
    section: page.slice(from + begin.length, to),
    after: page.slice(to + end.length),
  };
}

function describe(walked) {
  return walked
    .map(({ title, count, files }) => `**${title}**, ${count} files:\n\n\`\`\`\n${draw(files)}\n\`\`\`\n`)
    .join("\n");
}

/** A line for each change of folder: the folder, then its files in order. */
function draw(files) {
  const stretches = [];
  for (const file of files.filter(isCounted)) {
    const folder = dirname(file);
    const last = stretches.at(-1);
    if (last?.folder === folder) last.names.push(posix.basename(file, ".ts"));
    else stretches.push({ folder, names: [posix.basename(file, ".ts")] });
  }
  const indent = Math.max(...stretches.map(({ folder }) => folder.length)) + 2;
  return stretches.map(({ folder, names }) => folder.padEnd(indent) + wrap(names, indent)).join("\n");
}

function wrap(names, indent) {
  let text = names[0];
  let used = indent + text.length;
  for (const name of names.slice(1)) {
    const isFull = used + 3 + name.length > width;
    text += isFull ? ` ›\n${" ".repeat(indent)}${name}` : ` › ${name}`;
    used = isFull ? indent + name.length : used + 3 + name.length;
  }
  return text;
}
