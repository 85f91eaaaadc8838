"""Rules for well-known JavaScript packages; a dot in a package name is written `_`, subpaths are omitted."""

from qwed.guards._javascript.rules import HARMLESS, UNKNOWN, Rule, effect_rules, rows, violation_rules
from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind

_PURE = """
lodash lodash-es underscore ramda immutable immer rxjs date-fns dayjs moment moment-timezone luxon uuid nanoid zod yup
joi ajv validator class-validator class-transformer superstruct io-ts fp-ts ts-pattern type-fest classnames clsx
prop-types react react-dom react-is react-redux react-hook-form react-i18next react-intl react-transition-group redux
@reduxjs/toolkit redux-thunk redux-saga reselect zustand jotai recoil mobx mobx-react mobx-react-lite xstate valtio
vue vuex pinia vue-router @vue/reactivity svelte solid-js preact preact/hooks lit lit-html @angular/core
@angular/common @angular/forms @angular/router @angular/platform-browser inferno styled-components @emotion/react
@emotion/styled tailwind-merge @mui/material @mui/icons-material antd @headlessui/react @heroicons/react lucide-react
react-icons framer-motion formik react-select react-table @tanstack/react-table bignumber_js big_js decimal_js
decimal_js-light bn_js mathjs fraction_js long seedrandom chance faker @faker-js/faker ml-matrix simple-statistics
d3 d3-array d3-scale d3-shape d3-selection d3-hierarchy chart_js react-chartjs-2 recharts three p5 pixi_js gsap
konva fabric leaflet chalk kleur colors picocolors ansi-styles ansi-colors strip-ansi supports-color string-width
wrap-ansi cli-table cli-table3 ora boxen figlet cli-progress commander yargs yargs-parser minimist arg meow inquirer
prompts enquirer debug loglevel async bluebird q p-limit p-map p-queue p-retry eventemitter3 mitt tslib
core-js regenerator-runtime reflect-metadata inversify tsyringe semver slugify slug pluralize camelcase
change-case escape-string-regexp he entities html-entities marked markdown-it remark rehype unified showdown
dompurify xss sanitize-html sanitize-filename qs query-string url-parse path-to-regexp mime mime-types ms bytes
pretty-bytes humanize-duration filesize iconv-lite base64-js buffer-from safe-buffer inherits object-assign
deepmerge fast-deep-equal deep-equal lodash_merge lodash_debounce lodash_throttle lodash_get lodash_set
lodash_clonedeep lodash_isequal lodash_groupby clone rfdc fast-json-stable-stringify json5 yaml js-yaml toml ini
papaparse csv-parse csv-stringify xml2js fast-xml-parser crypto-js bcrypt bcryptjs argon2 jsonwebtoken jose
md5 sha_js hash_js tweetnacl elliptic lru-cache quick-lru memoize-one moize memoizee heap fastpriorityqueue
priorityqueuejs collections graphlib trie-search fuse_js levenshtein fast-levenshtein natural compromise franc
graphql graphql-tag i18next intl-messageformat accounting currency_js dinero_js iso-639-1 libphonenumber-js
credit-card-type email-validator is-email is-number is-odd is-even is-promise is-plain-object kind-of left-pad
@types/node jest @jest/globals vitest mocha chai sinon tape ava @testing-library/react
@testing-library/jest-dom @testing-library/user-event enzyme react-test-renderer storybook acorn
esprima estraverse @babel/parser @babel/types fastest-levenshtein color tinycolor2
chroma-js polished normalize_css animate_css bootstrap jquery react-beautiful-dnd react-dnd immutability-helper
normalizr hoist-non-react-statics use-debounce react-use usehooks-ts body-parser cors helmet morgan compression
cookie-parser express-validator express-async-handler http-errors http-status-codes on-finished vary etag fresh
koa-router koa-bodyparser @nestjs/common @nestjs/core passport tiny-invariant invariant warning
effect neverthrow purify-ts folktale sanctuary monet crocks daggy most xstream highland iter-tools
itertools wu lazy_js linq streamx through2 concat-stream split2 pump duplexify readable-stream string_prototype_padstart
array-flatten arr-diff union-value uniq object-path dot-prop flat traverse just-clone nanoevents signals @preact/signals
bitset roaring murmurhash xxhashjs crc-32 pako fflate jszip
"""

PACKAGE_RULES: dict[str, Rule] = {
    **rows(HARMLESS, _PURE),
    **rows(UNKNOWN, "electron esbuild webpack rollup vite typescript @babel/core ts-morph jsdom cheerio.load"),
    **rows(HARMLESS, "cheerio express koa fastify @hapi/hapi restify polka next next-auth react-router-dom"),
    **rows(HARMLESS, "react-router react-helmet next/router next/link next/image next/head hono socket_io-parser"),
    **rows(
        HARMLESS, "@tanstack/react-query react-query swr @apollo/client rxjs express() koa() fastify() express.Router"
    ),
    **effect_rules(
        EffectKind.NETWORK, "express().listen koa().listen fastify().listen restify().listen polka().listen"
    ),
    **effect_rules(EffectKind.NETWORK, "rxjs.ajax rxjs.fromFetch rxjs.webSocket @hapi/hapi.server hono().fire"),
    **effect_rules(
        EffectKind.NETWORK, "fetch axios got request request-promise request-promise-native superagent ky needle"
    ),
    **effect_rules(
        EffectKind.NETWORK, "undici ws socket_io socket_io-client isomorphic-ws bent phin wretch http-proxy"
    ),
    **effect_rules(
        EffectKind.NETWORK, "http-proxy-middleware follow-redirects ssh2 ssh2-sftp-client node-ssh ftp basic-ftp"
    ),
    **effect_rules(
        EffectKind.NETWORK, "mqtt amqplib kafkajs nats zeromq redis ioredis memcached pg mysql mysql2 mariadb"
    ),
    **effect_rules(EffectKind.NETWORK, "tedious mssql oracledb mongodb mongoose sequelize typeorm knex @prisma/client"),
    **effect_rules(
        EffectKind.NETWORK, "aws-sdk @aws-sdk @google-cloud @azure googleapis firebase firebase-admin octokit"
    ),
    **effect_rules(
        EffectKind.NETWORK, "@octokit/rest openai @anthropic-ai/sdk langchain @supabase/supabase-js web3 ethers"
    ),
    **effect_rules(
        EffectKind.NETWORK, "puppeteer puppeteer-core playwright selenium-webdriver webdriverio discord_js telegraf"
    ),
    **effect_rules(
        EffectKind.NETWORK, "node-telegram-bot-api imap mailparser bullmq bull agenda elasticsearch dockerode"
    ),
    **effect_rules(
        EffectKind.NETWORK, "@elastic/elasticsearch apollo-server graphql-request http-server serve live-server"
    ),
    **effect_rules(EffectKind.NETWORK, "jquery.ajax jquery.get jquery.post jquery.getJSON jquery.load"),
    **rows(HARMLESS, "axios.isAxiosError axios.isCancel axios.CancelToken axios.AxiosError mongoose.Schema"),
    **rows(HARMLESS, "mongoose.Types typeorm.Entity typeorm.Column typeorm.PrimaryGeneratedColumn typeorm.OneToMany"),
    **rows(HARMLESS, "typeorm.ManyToOne typeorm.JoinColumn typeorm.Repository sequelize.DataTypes sequelize.Op"),
    **rows(HARMLESS, "ethers.utils web3.utils ws.OPEN ws.CLOSED"),
    **effect_rules(
        EffectKind.COMMUNICATE, "nodemailer @sendgrid/mail twilio @slack/web-api @slack/bolt mailgun-js postmark"
    ),
    **effect_rules(EffectKind.COMMUNICATE, "web-push node-notifier emailjs mailchimp resend messagebird vonage"),
    **effect_rules(
        EffectKind.SPEND, "stripe braintree paypal-rest-sdk @paypal/checkout-server-sdk square plaid razorpay"
    ),
    **effect_rules(
        EffectKind.READ, "glob globby fast-glob tiny-glob klaw recursive-readdir readdirp chokidar find-up pkg-dir"
    ),
    **effect_rules(
        EffectKind.READ, "pkg-up read-pkg cosmiconfig n-readlines line-reader systeminformation exceljs xlsx sharp"
    ),
    **effect_rules(EffectKind.READ, "express.static koa-static serve-static locate-path walkdir config file-type"),
    **effect_rules(
        EffectKind.WRITE, "mkdirp write-file-atomic tmp tmp-promise temp tempy unzipper adm-zip archiver tar"
    ),
    **effect_rules(
        EffectKind.WRITE, "extract-zip decompress winston pino log4js sqlite3 better-sqlite3 nedb lowdb level"
    ),
    **effect_rules(
        EffectKind.WRITE, "leveldb conf configstore multer formidable pdfkit jimp node-localstorage node-persist"
    ),
    **rows(HARMLESS, "xlsx.utils winston.format pino.stdTimeFunctions"),
    **effect_rules(EffectKind.DELETE, "rimraf del trash"),
    **effect_rules(
        EffectKind.SECRET, "dotenv dotenv-expand dotenv-safe dotenv-flow keytar node-keytar clipboardy iohook"
    ),
    **effect_rules(
        EffectKind.SECRET, "node-global-key-listener screenshot-desktop chrome-cookies-secure env-var envalid"
    ),
    **effect_rules(EffectKind.ADMIN, "robotjs node-windows node-linux winreg regedit pm2 forever"),
    **violation_rules(
        ViolationKind.PROCESS, "shelljs execa cross-spawn cross-spawn-async node-cmd node-pty node-pty-prebuilt zx"
    ),
    **violation_rules(ViolationKind.PROCESS, "spawn-sync exec-sh open opn ps-node npm-run-all concurrently nodemon"),
    **violation_rules(
        ViolationKind.PROCESS, "workerpool piscina threads tinypool child-process-promise promisify-child-process"
    ),
    **violation_rules(ViolationKind.PROCESS, "simple-git sudo-prompt foreground-child tree-kill python-shell sh"),
    **violation_rules(
        ViolationKind.DYNAMIC, "vm2 isolated-vm safe-eval static-eval notevil node-eval require-from-string esm jiti"
    ),
    **violation_rules(
        ViolationKind.DYNAMIC,
        "ts-node tsx @babel/register @swc-node/register sandboxjs new-function ffi ffi-napi koffi",
    ),
    **violation_rules(
        ViolationKind.DYNAMIC, "node-ffi ref-napi edge-js import-fresh import-from require-uncached vm-browserify"
    ),
    **violation_rules(
        ViolationKind.DYNAMIC,
        "jquery.globalEval jquery.getScript quickjs-emscripten eval5 sval bindings node-gyp-build",
    ),
    **violation_rules(ViolationKind.DESERIALISE, "node-serialize serialize-to-js funcster cryo js-yaml-js-types"),
    **violation_rules(ViolationKind.DESERIALISE, "js-yaml.DEFAULT_FULL_SCHEMA serialijse"),
    **rows(HARMLESS, "serialize-javascript devalue superjson ejs handlebars mustache pug nunjucks dot eta liquidjs"),
    **effect_rules(EffectKind.READ, "renderFile compileFile render.file ejs.renderFile pug.renderFile pug.compileFile"),
}

TEMPLATES = frozenset({
    "lodash.template", "lodash-es.template", "underscore.template", "ejs.render", "ejs.compile", "pug.render",
    "pug.compile", "handlebars.compile", "nunjucks.renderString", "nunjucks.compile", "dot.template", "dot.compile",
    "eta.render", "eta.compile",
})  # fmt: skip
"""Template languages that contain code: harmless if the template is a literal."""

UNDECLARED = {
    "$": "jquery",
    "jQuery": "jquery",
    "_": "lodash",
    "R": "ramda",
    "React": "react",
    "ReactDOM": "react-dom",
    "Vue": "vue",
    "Vuex": "vuex",
    "moment": "moment",
    "dayjs": "dayjs",
    "axios": "axios",
    "d3": "d3",
    "THREE": "three",
    "Chart": "chart_js",
    "gsap": "gsap",
    "io": "socket_io-client",
    "ethers": "ethers",
    "Handlebars": "handlebars",
    "DOMPurify": "dompurify",
    "Immutable": "immutable",
    "rxjs": "rxjs",
    "L": "leaflet",
    "BigNumber": "bignumber_js",
    "Decimal": "decimal_js",
    "CryptoJS": "crypto-js",
    "z": "zod",
    "PropTypes": "prop-types",
}
"""Packages that a page or a snippet uses without importing them."""
