// Prints what it takes to make tools of one large description: processor time of the whole process, which others on the machine do not
// change, and the most memory that it had.

import { convert } from "./convert.mjs";

const { tools } = await convert(process.argv[2], false);
const { user, system } = process.cpuUsage();
const ms = Math.round((user + system) / 1000);
console.log(JSON.stringify({ tools, ms, megabytes: Math.round(process.resourceUsage().maxRSS / 1024) }));
