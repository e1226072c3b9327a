// Loaded before a program (`node --import`): each SIGUSR2 moves its wall clock. Timers and the monotonic clock go on as they are.

const hour = 3_600_000;
const jumps = [hour, -hour, -hour, hour, 24 * hour, -24 * hour, -365 * 24 * hour, 365 * 24 * hour];
const { now } = Date;
let offset = 0;
let count = 0;
Date.now = () => now() + offset;
process.on("SIGUSR2", () => {
  offset += jumps[count++ % jumps.length];
});
