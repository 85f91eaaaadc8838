"""What each name of JavaScript itself, of Node.js, Deno, Bun and the browser does.

The longest dotted prefix that has a row speaks for a name. A name that is called is written `name()`.
"""

from qwed.guards._javascript.packages import PACKAGE_RULES
from qwed.guards._javascript.rules import HARMLESS, UNKNOWN, Rule, danger, effect, rows, words
from qwed.guards.code_words import Danger
from qwed.words import EffectKind

_LANGUAGE = """
undefined NaN Infinity isNaN isFinite parseInt parseFloat encodeURI encodeURIComponent decodeURI decodeURIComponent
escape unescape Object Array String Number Boolean Symbol BigInt Math Date RegExp JSON Map Set WeakMap WeakSet WeakRef
FinalizationRegistry Promise Proxy Reflect Error TypeError RangeError SyntaxError ReferenceError EvalError URIError
AggregateError Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array Float32Array
Float64Array BigInt64Array BigUint64Array ArrayBuffer SharedArrayBuffer DataView Atomics Intl Iterator console
setTimeout setInterval setImmediate clearTimeout clearInterval clearImmediate queueMicrotask structuredClone atob btoa
TextEncoder TextDecoder URL URLSearchParams AbortController AbortSignal Event EventTarget CustomEvent performance
Performance PerformanceObserver Buffer Blob arguments Headers FormData Request Response ReadableStream WritableStream
TransformStream MessageChannel CompressionStream DecompressionStream DOMException Temporal DisposableStack
SuppressedError module exports require __dirname __filename define crypto CryptoKey SubtleCrypto globalThis
"""
_BROWSER = """
document location history screen navigator Element HTMLElement Node NodeList NodeFilter Document DocumentFragment
HTMLInputElement HTMLFormElement HTMLCanvasElement HTMLImageElement HTMLDivElement HTMLButtonElement SVGElement
HTMLAnchorElement HTMLTextAreaElement HTMLSelectElement HTMLVideoElement HTMLAudioElement HTMLTemplateElement
customElements ShadowRoot MutationObserver IntersectionObserver ResizeObserver requestAnimationFrame
cancelAnimationFrame requestIdleCallback cancelIdleCallback alert confirm prompt getComputedStyle matchMedia scrollTo
scrollBy scroll innerWidth innerHeight outerWidth outerHeight pageXOffset pageYOffset scrollX scrollY devicePixelRatio
addEventListener removeEventListener dispatchEvent MouseEvent KeyboardEvent TouchEvent PointerEvent WheelEvent DragEvent
FocusEvent InputEvent MessageEvent ErrorEvent PopStateEvent StorageEvent Image Image() Audio AudioContext DOMParser
XMLSerializer File FileReader FileList Path2D ImageData CanvasRenderingContext2D OffscreenCanvas WebGLRenderingContext
SpeechSynthesisUtterance speechSynthesis Range Selection getSelection CSS CSSStyleSheet StyleSheet Text Comment Attr
DOMRect DOMPoint DOMMatrix Option print focus blur close stop origin isSecureContext visualViewport postMessage onload
onerror onmessage Notification Animation KeyframeEffect BroadcastChannel trustedTypes XPathResult HTMLCollection
ServiceWorkerGlobalScope WorkerGlobalScope clients skipWaiting registration event createImageBitmap
"""
_TESTS = """
describe it test expect beforeEach afterEach beforeAll afterAll before after jest vi suite assert should chai sinon
cy Cypress jasmine spyOn fit xit xdescribe fdescribe context specify mocha
"""
_NODE_PURE = """
path path/posix util events assert url querystring buffer string_decoder perf_hooks stream async_hooks timers punycode
zlib constants diagnostics_channel readline tty test sys
"""
_PROCESS_PURE = """
argv argv0 execArgv execPath stdin stdout stderr exit exitCode abort nextTick hrtime uptime memoryUsage cpuUsage
resourceUsage platform arch version versions pid ppid release config features title on once off addListener
removeListener removeAllListeners emit emitWarning env.NODE_ENV allowedNodeEnvironmentFlags browser getuid getgid
geteuid getegid getgroups constrainedMemory availableMemory channel connected debugPort listeners listenerCount
setMaxListeners stdout.write stderr.write setUncaughtExceptionCaptureCallback
"""
_FS_READ = """
readFile readFileSync readdir readdirSync createReadStream ReadStream stat statSync lstat lstatSync fstat fstatSync
access accessSync exists existsSync readlink readlinkSync realpath realpathSync opendir opendirSync read readSync readv
readvSync watch watchFile unwatchFile statfs statfsSync glob globSync openAsBlob readJson readJSON readJsonSync
readJSONSync pathExists pathExistsSync
"""
_FS_WRITE = """
writeFile writeFileSync appendFile appendFileSync createWriteStream WriteStream write writeSync writev writevSync mkdir
mkdirSync mkdtemp mkdtempSync rename renameSync copyFile copyFileSync cp cpSync chmod chmodSync chown chownSync lchown
lchownSync fchmod fchmodSync fchown fchownSync link linkSync symlink symlinkSync truncate truncateSync ftruncate
ftruncateSync utimes utimesSync futimes futimesSync lutimes lutimesSync open openSync fsync fsyncSync fdatasync
fdatasyncSync outputFile outputFileSync outputJson outputJSON outputJsonSync outputJSONSync writeJson writeJSON
writeJsonSync writeJSONSync copy copySync move moveSync ensureDir ensureDirSync ensureFile ensureFileSync ensureLink
ensureSymlink mkdirp mkdirpSync mkdirs mkdirsSync
"""
_FS_DELETE = """
unlink unlinkSync rm rmSync rmdir rmdirSync remove removeSync emptyDir emptyDirSync emptydir rimraf
"""
_OS_PURE = """
EOL platform type arch cpus release totalmem freemem uptime endianness loadavg constants availableParallelism version
machine devNull
"""

_DENO: dict[str, Rule] = {
    **rows(UNKNOWN, "Deno"),
    **rows(HARMLESS, "args exit build version errors test bench inspect pid mainModule stdin stdout stderr", "Deno."),
    **rows(HARMLESS, "memoryUsage hrtime addSignalListener noColor SeekMode", "Deno."),
    **effect(EffectKind.READ, "readTextFile readTextFileSync readFile readFileSync readDir readDirSync cwd", "Deno."),
    **effect(EffectKind.READ, "stat statSync lstat lstatSync realPath realPathSync readLink watchFs hostname", "Deno."),
    **effect(EffectKind.READ, "osRelease systemMemoryInfo networkInterfaces uid gid loadavg osUptime", "Deno."),
    **effect(EffectKind.WRITE, "writeTextFile writeTextFileSync writeFile writeFileSync mkdir mkdirSync", "Deno."),
    **effect(EffectKind.WRITE, "open openSync create createSync rename renameSync copyFile copyFileSync", "Deno."),
    **effect(EffectKind.WRITE, "chmod chmodSync chown truncate symlink link makeTempFile makeTempDir chdir", "Deno."),
    **effect(EffectKind.WRITE, "utime openKv", "Deno."),
    **effect(EffectKind.DELETE, "remove removeSync", "Deno."),
    **effect(EffectKind.NETWORK, "connect connectTls listen listenTls serve resolveDns serveHttp startTls", "Deno."),
    **effect(EffectKind.NETWORK, "listenDatagram createHttpClient upgradeWebSocket", "Deno."),
    **effect(EffectKind.SECRET, "env", "Deno."),
    **effect(EffectKind.ADMIN, "kill permissions umask", "Deno."),
    **danger(Danger.PROCESS, "run Command", "Deno."),
    **danger(Danger.DYNAMIC, "dlopen UnsafePointer UnsafeFnPointer emit", "Deno."),
    **danger(Danger.REFLECT, "core internal [Deno.internal]", "Deno."),
    **rows(UNKNOWN, "Bun"),
    **rows(HARMLESS, "hash version revision sleep sleepSync inspect argv nanoseconds deepEquals escapeHTML", "Bun."),
    **rows(HARMLESS, "password gzipSync gunzipSync semver stringWidth peek randomUUIDv7 main CryptoHasher", "Bun."),
    **effect(EffectKind.READ, "file Glob resolve which mmap", "Bun."),
    **effect(EffectKind.WRITE, "write", "Bun."),
    **effect(EffectKind.NETWORK, "serve connect listen udpSocket dns sql SQL redis", "Bun."),
    **effect(EffectKind.SECRET, "env secrets", "Bun."),
    **danger(Danger.PROCESS, "spawn spawnSync $ openInEditor", "Bun."),
    **danger(Danger.DYNAMIC, "build Transpiler plugin FFI", "Bun."),
}

_GLOBALS: dict[str, Rule] = {
    **rows(HARMLESS, _LANGUAGE),
    **rows(HARMLESS, _BROWSER),
    **rows(HARMLESS, _TESTS),
    **danger(Danger.DYNAMIC, "eval Function execScript importScripts GeneratorFunction AsyncGeneratorFunction"),
    **danger(Danger.DYNAMIC, "WebAssembly ?.constructor() AsyncFunction ShadowRealm crypto.setEngine"),
    **rows(
        HARMLESS,
        "Function.prototype Function.name Function.length Object.prototype ?.constructor ?.constructor.prototype",
    ),
    **danger(Danger.REFLECT, "globalThis.* require.* module.* process.*"),
    **rows(HARMLESS, "this"),
    **danger(Danger.DYNAMIC, "this.eval this.Function"),
    **rows(UNKNOWN, "require.cache require.extensions require.main.children"),
    **danger(Danger.REFLECT, "module._load module._compile module._extensions module._cache module.constructor"),
    **danger(Danger.REFLECT, "Error.prepareStackTrace arguments.callee.caller arguments.caller"),
    **effect(EffectKind.NETWORK, "fetch XMLHttpRequest WebSocket EventSource RTCPeerConnection WebTransport"),
    **effect(EffectKind.NETWORK, "navigator.sendBeacon Image().src Image().srcset RTCDataChannel open"),
    **effect(EffectKind.SECRET, "document.cookie cookieStore navigator.credentials navigator.clipboard.read"),
    **effect(EffectKind.SECRET, "navigator.clipboard.readText navigator.mediaDevices navigator.getUserMedia"),
    **effect(EffectKind.SECRET, "navigator.geolocation showOpenFilePicker showDirectoryPicker navigator.usb"),
    **effect(EffectKind.WRITE, "navigator.clipboard.writeText navigator.clipboard.write showSaveFilePicker"),
    **effect(EffectKind.WRITE, "localStorage sessionStorage indexedDB caches navigator.storage openDatabase"),
    **effect(EffectKind.READ, "localStorage.getItem sessionStorage.getItem localStorage.length localStorage.key"),
    **effect(EffectKind.READ, "caches.match caches.has caches.keys sessionStorage.length sessionStorage.key"),
    **effect(EffectKind.DELETE, "localStorage.clear localStorage.removeItem indexedDB.deleteDatabase caches.delete"),
    **effect(EffectKind.DELETE, "sessionStorage.clear sessionStorage.removeItem"),
    **effect(EffectKind.EXECUTE, "Worker SharedWorker navigator.serviceWorker.register"),
    **rows(UNKNOWN, "chrome browser WScript external"),
    **effect(EffectKind.SECRET, "chrome.cookies browser.cookies chrome.history chrome.passwordsPrivate"),
    **effect(EffectKind.NETWORK, "chrome.webRequest chrome.proxy browser.webRequest chrome.runtime.sendMessage"),
    **danger(Danger.DYNAMIC, "chrome.scripting chrome.tabs.executeScript chrome.debugger chrome.userScripts"),
    **danger(Danger.PROCESS, "WScript.Shell WScript.CreateObject ActiveXObject"),
}

_NODE: dict[str, Rule] = {
    **rows(HARMLESS, _NODE_PURE),
    **rows(UNKNOWN, "fs os process http https v8 trace_events worker_threads module test_runner"),
    **rows(HARMLESS, "constants F_OK R_OK W_OK X_OK Dirent Stats Dir close closeSync", "fs."),
    **effect(EffectKind.READ, _FS_READ, "fs."),
    **effect(EffectKind.WRITE, _FS_WRITE, "fs."),
    **effect(EffectKind.DELETE, _FS_DELETE, "fs."),
    **rows(HARMLESS, _OS_PURE, "os."),
    **effect(EffectKind.READ, "homedir tmpdir hostname networkInterfaces userInfo getPriority", "os."),
    **effect(EffectKind.ADMIN, "os.setPriority"),
    **rows(HARMLESS, _PROCESS_PURE, "process."),
    **effect(EffectKind.READ, "process.cwd process.openStdin"),
    **effect(EffectKind.SECRET, "process.env process.loadEnvFile"),
    **effect(EffectKind.WRITE, "process.chdir process.report process.setSourceMapsEnabled"),
    **effect(EffectKind.ADMIN, "kill setuid setgid seteuid setegid setgroups initgroups umask permission", "process."),
    **effect(EffectKind.COMMUNICATE, "process.send process.disconnect"),
    **danger(Danger.REFLECT, "binding _linkedBinding mainModule moduleLoadList _kill _debugProcess", "process."),
    **danger(
        Danger.REFLECT, "_getActiveHandles _getActiveRequests _rawDebug _tickCallback getBuiltinModule", "process."
    ),
    **danger(Danger.DYNAMIC, "process.dlopen process.constructor"),
    **effect(EffectKind.NETWORK, "http https http2 net tls dgram dns"),
    **rows(HARMLESS, "http.STATUS_CODES http.METHODS net.isIP net.isIPv4 net.isIPv6 http2.constants"),
    **rows(HARMLESS, "http.IncomingMessage http.ServerResponse http.OutgoingMessage"),
    **danger(Danger.PROCESS, "child_process cluster worker_threads.Worker test.run"),
    **rows(HARMLESS, "isMainThread parentPort workerData threadId MessageChannel MessagePort", "worker_threads."),
    **danger(
        Danger.DYNAMIC, "vm repl inspector module.createRequire module.register module.runMain module.Module wasi"
    ),
    **danger(Danger.REFLECT, "module._resolveFilename module._nodeModulePaths module.prototype module.wrap"),
    **rows(HARMLESS, "module.builtinModules module.isBuiltin module.exports module.id module.filename module.loaded"),
    **rows(HARMLESS, "module.hot module.children module.parent module.paths module.path"),
    **danger(Danger.DESERIALISE, "v8.deserialize v8.Deserializer v8.DefaultDeserializer"),
    **rows(HARMLESS, "v8.serialize v8.getHeapStatistics v8.getHeapSpaceStatistics v8.cachedDataVersionTag"),
    **danger(Danger.DYNAMIC, "v8.setFlagsFromString v8.startupSnapshot"),
    **effect(EffectKind.WRITE, "v8.writeHeapSnapshot sqlite"),
    **danger(Danger.REFLECT, "util._extend.constructor async_hooks.constructor"),
}

RULES: dict[str, Rule] = {**PACKAGE_RULES, **_DENO, **_NODE, **_GLOBALS}

NODE_MODULES = words(
    _NODE_PURE + " fs os process http https http2 net tls dgram dns child_process cluster worker_threads vm repl "
    "inspector module v8 crypto console trace_events wasi sqlite test"
)
PACKAGES = NODE_MODULES | {name.partition(".")[0] for name in PACKAGE_RULES}
GLOBAL_NAMES = frozenset(name.partition(".")[0].removesuffix("()") for name in (*_GLOBALS, *_DENO)) | {"process"}
"""Names that need no import."""

GLOBAL_OBJECTS = words("globalThis window self global top frames parent")
MODULE_ALIASES = {
    "fs-extra": "fs",
    "graceful-fs": "fs",
    "memfs": "fs",
    "original-fs": "fs",
    "mz": "fs",
    "sys": "util",
    "open": "opn",
    "eval": "node-eval",
    "process/browser": "process",
    "node-fetch": "fetch",
    "cross-fetch": "fetch",
    "isomorphic-fetch": "fetch",
    "whatwg-fetch": "fetch",
    "_http_client": "http",
    "_tls_wrap": "tls",
    "inspector/promises": "inspector",
}
OBJECTS = words("globalThis process console Math JSON Reflect Atomics Intl document navigator location module exports")
"""Names of plain objects: their constructor is `Object`, everybody else's is `Function`."""

METHODS: dict[str, Rule] = {
    **rows(Rule(danger=Danger.PROCESS), "execSync spawnSync execFileSync execFile"),
    **rows(Rule(danger=Danger.DYNAMIC), "runInNewContext runInThisContext runInContext createContextualFragment"),
    **rows(Rule(danger=Danger.DYNAMIC), "globalEval getScript compileFunction importScripts"),
    **rows(Rule(danger=Danger.REFLECT), "__defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ dlopen"),
    **rows(Rule(danger=Danger.REFLECT), "_linkedBinding mainModule prepareStackTrace getBuiltinModule"),
    **effect(EffectKind.NETWORK, "sendBeacon requestSubmit"),
    **{
        name.removeprefix("fs."): rule
        for name, rule in _NODE.items()
        if name.startswith("fs.") and name.endswith(("Sync", "readFile", "writeFile", "appendFile", "unlink", "Stream"))
        and rule.effect is not None
    },
}  # fmt: skip
"""What a method does whatever it is called on: names that nobody else uses."""

HTML_SINKS = words("innerHTML outerHTML srcdoc")
HTML_CALLS = words("insertAdjacentHTML write writeln setHTMLUnsafe parseFromString")
TAINTED = words("location document.URL document.documentURI document.referrer document.cookie document.baseURI")
"""What whoever sends a link can choose."""
