// Starts `setpoint lsp` for files of the language mcl; everything else is the server's.
"use strict";

const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const settings = workspace.getConfiguration("setpoint");
  const modules = settings.get("modulePath");
  const server = {
    command: settings.get("path"),
    args: modules ? ["lsp", "--module-path", modules] : ["lsp"],
  };
  const options = { documentSelector: [{ language: "mcl" }] };
  client = new LanguageClient("setpoint", "mcl", server, options);
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(`\`${server.command} lsp\` did not start: ${error.message}. The setting \`setpoint.path\` says where the program is.`);
  }
}

async function stop() {
  await client?.stop();
  client = undefined;
}

async function activate(context) {
  const restart = commands.registerCommand("setpoint.restart", async () => {
    await stop();
    await start();
  });
  context.subscriptions.push(restart);
  await start();
}

module.exports = { activate, deactivate: stop };
