// Starts `setpoint lsp` for files of the languages of Setpoint, and shows the texts behind its addresses; everything else is the server's.
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
  const options = {
    documentSelector: ["mcl", "setpoint-model"].flatMap((language) => [
      { language, scheme: "file" },
      { language, scheme: "untitled" },
    ]),
  };
  client = new LanguageClient("setpoint", "Setpoint", server, options);
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

// Pages of errors, and modules that are part of the program `setpoint`: documents that cannot be changed.
const texts = {
  async provideTextDocumentContent(address, token) {
    const text = await client?.sendRequest("setpoint/text", { uri: address.toString(true) }, token);
    return text ?? `There is no ${address.toString(true)}, or the language server does not run.`;
  },
};

async function activate(context) {
  context.subscriptions.push(workspace.registerTextDocumentContentProvider("setpoint", texts));
  const restart = commands.registerCommand("setpoint.restart", async () => {
    await stop();
    await start();
  });
  context.subscriptions.push(restart);
  await start();
}

module.exports = { activate, deactivate: stop };
