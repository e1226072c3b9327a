// Preloaded into every server: answers a message from its parent with the CPU time the process has used so far.

process.on("message", () => process.send?.(process.cpuUsage()));
process.channel?.unref();
