"""Rules for the names of JavaScript itself, Node.js, Deno, Bun and the browser.

The longest dotted prefix with a rule applies to a name. A name that is called is written `name()`.
"""

from qwed.guards._javascript.packages import PACKAGE_RULES
from qwed.guards._javascript.rules import HARMLESS, UNKNOWN, Rule, effect_rules, rows, violation_rules, words
from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind

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
    **effect_rules(
        EffectKind.READ, "readTextFile readTextFileSync readFile readFileSync readDir readDirSync cwd", "Deno."
    ),
    **effect_rules(
        EffectKind.READ, "stat statSync lstat lstatSync realPath realPathSync readLink watchFs hostname", "Deno."
    ),
    **effect_rules(EffectKind.READ, "osRelease systemMemoryInfo networkInterfaces uid gid loadavg osUptime", "Deno."),
    **effect_rules(
        EffectKind.WRITE, "writeTextFile writeTextFileSync writeFile writeFileSync mkdir mkdirSync", "Deno."
    ),
    **effect_rules(
        EffectKind.WRITE, "open openSync create createSync rename renameSync copyFile copyFileSync", "Deno."
    ),
    **effect_rules(
        EffectKind.WRITE, "chmod chmodSync chown truncate symlink link makeTempFile makeTempDir chdir", "Deno."
    ),
    **effect_rules(EffectKind.WRITE, "utime openKv", "Deno."),
    **effect_rules(EffectKind.DELETE, "remove removeSync", "Deno."),
    **effect_rules(
        EffectKind.NETWORK, "connect connectTls listen listenTls serve resolveDns serveHttp startTls", "Deno."
    ),
    **effect_rules(EffectKind.NETWORK, "listenDatagram createHttpClient upgradeWebSocket", "Deno."),
    **effect_rules(EffectKind.SECRET, "env", "Deno."),
    **effect_rules(EffectKind.ADMIN, "kill permissions umask", "Deno."),
    **violation_rules(ViolationKind.PROCESS, "run Command", "Deno."),
    **violation_rules(ViolationKind.DYNAMIC, "dlopen UnsafePointer UnsafeFnPointer emit", "Deno."),
    **violation_rules(ViolationKind.REFLECT, "core internal [Deno.internal]", "Deno."),
    **rows(UNKNOWN, "Bun"),
    **rows(HARMLESS, "hash version revision sleep sleepSync inspect argv nanoseconds deepEquals escapeHTML", "Bun."),
    **rows(HARMLESS, "password gzipSync gunzipSync semver stringWidth peek randomUUIDv7 main CryptoHasher", "Bun."),
    **effect_rules(EffectKind.READ, "file Glob resolve which mmap", "Bun."),
    **effect_rules(EffectKind.WRITE, "write", "Bun."),
    **effect_rules(EffectKind.NETWORK, "serve connect listen udpSocket dns sql SQL redis", "Bun."),
    **effect_rules(EffectKind.SECRET, "env secrets", "Bun."),
    **violation_rules(ViolationKind.PROCESS, "spawn spawnSync $ openInEditor", "Bun."),
    **violation_rules(ViolationKind.DYNAMIC, "build Transpiler plugin FFI", "Bun."),
}

_GLOBALS: dict[str, Rule] = {
    **rows(HARMLESS, _LANGUAGE),
    **rows(HARMLESS, _BROWSER),
    **rows(HARMLESS, _TESTS),
    **violation_rules(
        ViolationKind.DYNAMIC, "eval Function execScript importScripts GeneratorFunction AsyncGeneratorFunction"
    ),
    **violation_rules(ViolationKind.DYNAMIC, "WebAssembly ?.constructor() AsyncFunction ShadowRealm crypto.setEngine"),
    **rows(
        HARMLESS,
        "Function.prototype Function.name Function.length Object.prototype ?.constructor ?.constructor.prototype",
    ),
    **violation_rules(ViolationKind.REFLECT, "globalThis.* require.* module.* process.*"),
    **rows(HARMLESS, "this"),
    **violation_rules(ViolationKind.DYNAMIC, "this.eval this.Function"),
    **rows(UNKNOWN, "require.cache require.extensions require.main.children"),
    **violation_rules(
        ViolationKind.REFLECT, "module._load module._compile module._extensions module._cache module.constructor"
    ),
    **violation_rules(ViolationKind.REFLECT, "Error.prepareStackTrace arguments.callee.caller arguments.caller"),
    **effect_rules(EffectKind.NETWORK, "fetch XMLHttpRequest WebSocket EventSource RTCPeerConnection WebTransport"),
    **effect_rules(EffectKind.NETWORK, "navigator.sendBeacon Image().src Image().srcset RTCDataChannel open"),
    **effect_rules(EffectKind.SECRET, "document.cookie cookieStore navigator.credentials navigator.clipboard.read"),
    **effect_rules(EffectKind.SECRET, "navigator.clipboard.readText navigator.mediaDevices navigator.getUserMedia"),
    **effect_rules(EffectKind.SECRET, "navigator.geolocation showOpenFilePicker showDirectoryPicker navigator.usb"),
    **effect_rules(EffectKind.WRITE, "navigator.clipboard.writeText navigator.clipboard.write showSaveFilePicker"),
    **effect_rules(EffectKind.WRITE, "localStorage sessionStorage indexedDB caches navigator.storage openDatabase"),
    **effect_rules(EffectKind.READ, "localStorage.getItem sessionStorage.getItem localStorage.length localStorage.key"),
    **effect_rules(EffectKind.READ, "caches.match caches.has caches.keys sessionStorage.length sessionStorage.key"),
    **effect_rules(
        EffectKind.DELETE, "localStorage.clear localStorage.removeItem indexedDB.deleteDatabase caches.delete"
    ),
    **effect_rules(EffectKind.DELETE, "sessionStorage.clear sessionStorage.removeItem"),
    **effect_rules(EffectKind.EXECUTE, "Worker SharedWorker navigator.serviceWorker.register"),
    **rows(UNKNOWN, "chrome browser WScript external"),
    **effect_rules(EffectKind.SECRET, "chrome.cookies browser.cookies chrome.history chrome.passwordsPrivate"),
    **effect_rules(EffectKind.NETWORK, "chrome.webRequest chrome.proxy browser.webRequest chrome.runtime.sendMessage"),
    **violation_rules(
        ViolationKind.DYNAMIC, "chrome.scripting chrome.tabs.executeScript chrome.debugger chrome.userScripts"
    ),
    **violation_rules(ViolationKind.PROCESS, "WScript.Shell WScript.CreateObject ActiveXObject"),
}

_NODE: dict[str, Rule] = {
    **rows(HARMLESS, _NODE_PURE),
    **rows(UNKNOWN, "fs os process http https v8 trace_events worker_threads module test_runner"),
    **rows(HARMLESS, "constants F_OK R_OK W_OK X_OK Dirent Stats Dir close closeSync", "fs."),
    **effect_rules(EffectKind.READ, _FS_READ, "fs."),
    **effect_rules(EffectKind.WRITE, _FS_WRITE, "fs."),
    **effect_rules(EffectKind.DELETE, _FS_DELETE, "fs."),
    **rows(HARMLESS, _OS_PURE, "os."),
    **effect_rules(EffectKind.READ, "homedir tmpdir hostname networkInterfaces userInfo getPriority", "os."),
    **effect_rules(EffectKind.ADMIN, "os.setPriority"),
    **rows(HARMLESS, _PROCESS_PURE, "process."),
    **effect_rules(EffectKind.READ, "process.cwd process.openStdin"),
    **effect_rules(EffectKind.SECRET, "process.env process.loadEnvFile"),
    **effect_rules(EffectKind.WRITE, "process.chdir process.report process.setSourceMapsEnabled"),
    **effect_rules(
        EffectKind.ADMIN, "kill setuid setgid seteuid setegid setgroups initgroups umask permission", "process."
    ),
    **effect_rules(EffectKind.COMMUNICATE, "process.send process.disconnect"),
    **violation_rules(
        ViolationKind.REFLECT, "binding _linkedBinding mainModule moduleLoadList _kill _debugProcess", "process."
    ),
    **violation_rules(
        ViolationKind.REFLECT,
        "_getActiveHandles _getActiveRequests _rawDebug _tickCallback getBuiltinModule",
        "process.",
    ),
    **violation_rules(ViolationKind.DYNAMIC, "process.dlopen process.constructor"),
    **effect_rules(EffectKind.NETWORK, "http https http2 net tls dgram dns"),
    **rows(HARMLESS, "http.STATUS_CODES http.METHODS net.isIP net.isIPv4 net.isIPv6 http2.constants"),
    **rows(HARMLESS, "http.IncomingMessage http.ServerResponse http.OutgoingMessage"),
    **violation_rules(ViolationKind.PROCESS, "child_process cluster worker_threads.Worker test.run"),
    **rows(HARMLESS, "isMainThread parentPort workerData threadId MessageChannel MessagePort", "worker_threads."),
    **violation_rules(
        ViolationKind.DYNAMIC,
        "vm repl inspector module.createRequire module.register module.runMain module.Module wasi",
    ),
    **violation_rules(
        ViolationKind.REFLECT, "module._resolveFilename module._nodeModulePaths module.prototype module.wrap"
    ),
    **rows(HARMLESS, "module.builtinModules module.isBuiltin module.exports module.id module.filename module.loaded"),
    **rows(HARMLESS, "module.hot module.children module.parent module.paths module.path"),
    **violation_rules(ViolationKind.DESERIALISE, "v8.deserialize v8.Deserializer v8.DefaultDeserializer"),
    **rows(HARMLESS, "v8.serialize v8.getHeapStatistics v8.getHeapSpaceStatistics v8.cachedDataVersionTag"),
    **violation_rules(ViolationKind.DYNAMIC, "v8.setFlagsFromString v8.startupSnapshot"),
    **effect_rules(EffectKind.WRITE, "v8.writeHeapSnapshot sqlite"),
    **violation_rules(ViolationKind.REFLECT, "util._extend.constructor async_hooks.constructor"),
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
"""Names of plain objects: their constructor is `Object`; that of any other name is `Function`."""

METHODS: dict[str, Rule] = {
    **rows(Rule(violation=ViolationKind.PROCESS), "execSync spawnSync execFileSync execFile"),
    **rows(Rule(violation=ViolationKind.DYNAMIC), "runInNewContext runInThisContext runInContext"),
    **rows(Rule(violation=ViolationKind.DYNAMIC), "createContextualFragment"),
    **rows(Rule(violation=ViolationKind.DYNAMIC), "globalEval getScript compileFunction importScripts"),
    **rows(Rule(violation=ViolationKind.REFLECT), "__defineGetter__ __defineSetter__ __lookupGetter__"),
    **rows(Rule(violation=ViolationKind.REFLECT), "__lookupSetter__ dlopen"),
    **rows(Rule(violation=ViolationKind.REFLECT), "_linkedBinding mainModule prepareStackTrace getBuiltinModule"),
    **effect_rules(EffectKind.NETWORK, "sendBeacon requestSubmit"),
    **{
        name.removeprefix("fs."): rule
        for name, rule in _NODE.items()
        if name.startswith("fs.") and name.endswith(("Sync", "readFile", "writeFile", "appendFile", "unlink", "Stream"))
        and rule.effect is not None
    },
}  # fmt: skip
"""Rules for methods of any object: names that nothing else uses."""

HTML_SINKS = words("innerHTML outerHTML srcdoc")
HTML_CALLS = words("insertAdjacentHTML write writeln setHTMLUnsafe parseFromString")
TAINTED = words("location document.URL document.documentURI document.referrer document.cookie document.baseURI")
"""Values that the sender of a link can choose."""
