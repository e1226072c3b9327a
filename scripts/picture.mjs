// `node scripts/picture.mjs`: writes docs/junctor.svg, the picture of the README.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadTypeScript } from "./load-typescript.mjs";
import { root } from "./setup.mjs";

const { legacyRevisions, newestModernRevision } = await loadTypeScript("packages/core/src/mcp/revision.ts");

const looks = {
  own: { line: "#334155", fill: "#f8fafc", title: "#0f172a", text: "#475569" },
  modern: { line: "#0f766e", fill: "#f0fdfa", title: "#134e4a", text: "#0f766e" },
  legacy: { line: "#b45309", fill: "#fffbeb", title: "#78350f", text: "#b45309" },
};
const clients = [
  ["modern", 90, "Modern clients", `${newestModernRevision}, stateless`],
  ["legacy", 238, "Legacy clients", `${legacyRevisions[0]} to ${legacyRevisions.at(-1)}`],
];
const servers = [
  ["own", 64, "Your own tools", "in the same process"],
  ["modern", 164, "Modern servers", "HTTP, stdio, TCP"],
  ["legacy", 264, "Legacy servers", "HTTP, HTTP+SSE, stdio"],
];
const inside = ["one endpoint, every era", "middleware", "one catalog of tools", "a client for each server"];

const box = (x, [look, y, title, text]) => {
  const { fill, line, title: dark, text: light } = looks[look];
  return `  <rect x="${x}" y="${y}" width="200" height="72" rx="10" fill="${fill}" stroke="${line}" stroke-width="1.5" />
  <text x="${x + 100}" y="${y + 31}" font-size="16" font-weight="600" fill="${dark}">${title}</text>
  <text x="${x + 100}" y="${y + 54}" font-size="13" fill="${light}">${text}</text>`;
};
// Both ways, because results stream and servers ask.
const line = (look, x1, y1, x2, y2) => {
  const middle = (x1 + x2) / 2;
  return `  <path d="M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}" fill="none" stroke="${looks[look].line}" stroke-width="2" marker-start="url(#${look})" marker-end="url(#${look})" />`;
};
const marker = ([
  look,
  { line },
]) => `  <marker id="${look}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
    <path d="M0 0 L10 5 L0 10 z" fill="${line}" />
  </marker>`;
const row = (
  text,
  at,
) => `  <rect x="384" y="${116 + 50 * at}" width="192" height="40" rx="8" fill="#1e293b" stroke="#475569" />
  <text x="480" y="${141 + 50 * at}" font-size="14" fill="#e2e8f0">${text}</text>`;

const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 400" width="960" height="400" role="img" aria-labelledby="title" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif" text-anchor="middle">
  <!-- Made by scripts/picture.mjs. -->
  <title id="title">Clients of both protocol eras reach Junctor, and Junctor reaches tools of your own and servers of both eras</title>
${Object.entries(looks).map(marker).join("\n")}
  <rect x="0.5" y="0.5" width="959" height="399" rx="16" fill="#ffffff" stroke="#e2e8f0" />
  <g font-size="13" font-weight="600" fill="#64748b" letter-spacing="1.5">
    <text x="140" y="42">CLIENTS</text>
    <text x="820" y="42">SERVERS</text>
  </g>
${clients.map((each) => box(40, each)).join("\n")}
  <rect x="360" y="62" width="240" height="276" rx="14" fill="#0f172a" />
  <text x="480" y="98" font-size="22" font-weight="700" fill="#ffffff">Junctor</text>
${inside.map(row).join("\n")}
${servers.map((each) => box(720, each)).join("\n")}
${clients.map(([look, y], at) => line(look, 246, y + 36, 354, 172 + 56 * at)).join("\n")}
${servers.map(([look, y], at) => line(look, 606, 160 + 40 * at, 714, y + 36)).join("\n")}
  <text x="480" y="374" font-size="13" fill="#64748b">calls go right; results, progress and questions to the user come back, translated where the eras differ</text>
</svg>
`;
writeFileSync(join(root, "docs/junctor.svg"), picture);
