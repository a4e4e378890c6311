// Drives a Testmo stub by the vendor's client: drive_testmo.js FOLDER ARGUMENT...
// FOLDER holds the client. Its one change: it asks for https, and a stub speaks http.
const [folder, ...rest] = process.argv.slice(2);
const client = `${folder}/node_modules/@testmo/testmo-cli/dist`;
const { Controller } = require(`${client}/core/controller.js`);
Controller.prototype.validateAndTruncateInstanceAddress = (address) => address;
process.env.TESTMO_TOKEN = 'key';
process.argv = [process.argv[0], `${client}/index.js`, ...rest];
require(`${client}/index.js`);
