"""What each name of Python's libraries does. The longest dotted prefix that has a row speaks for a name.

A mention is judged like a call: whoever can name `os.system` can call it in a way no reader would see.
"""

from dataclasses import dataclass

from qwed.guards.code_words import Danger
from qwed.words import EffectKind


@dataclass(frozen=True, slots=True)
class Rule:
    """One of: harmless, an effect, a violation, unknown."""

    effect: EffectKind | None = None
    danger: Danger | None = None


HARMLESS = Rule()
UNKNOWN = Rule(effect=EffectKind.UNRESOLVED)


def words(text: str) -> frozenset[str]:
    """The names in `text`."""
    return frozenset(text.split())


def _rows(rule: Rule, names: str, prefix: str = "") -> dict[str, Rule]:
    return {prefix + name: rule for name in names.split()}


def _effect(kind: EffectKind, names: str, prefix: str = "") -> dict[str, Rule]:
    return _rows(Rule(effect=kind), names, prefix)


def _danger(danger: Danger, names: str, prefix: str = "") -> dict[str, Rule]:
    return _rows(Rule(danger=danger), names, prefix)


_HARMLESS_MODULES = """
__future__ abc argparse array ast base64 binascii bisect calendar cmath collections collections.abc colorsys
contextlib contextvars copy csv dataclasses datetime decimal difflib email enum errno fnmatch fractions functools
getopt graphlib hashlib heapq hmac html html.parser http.HTTPStatus ipaddress itertools json keyword locale logging
math numbers operator pathlib platform pprint queue random re reprlib secrets shlex statistics string stringprep
struct textwrap threading time tomllib traceback types typing typing_extensions unicodedata urllib.parse uuid warnings
weakref zlib zoneinfo concurrent.futures xml.etree.ElementTree xml.sax.saxutils timeit.default_timer configparser
quopri plistlib atexit unittest.TestCase unittest.main sched yaml.safe_load yaml.safe_load_all yaml.safe_dump
yaml.dump yaml.SafeLoader yaml.CSafeLoader yaml.YAMLError numpy pandas io.StringIO io.BytesIO io.TextIOBase
io.RawIOBase io.IOBase io.SEEK_SET io.SEEK_END codecs.BOM_UTF8 codecs.lookup_error multiprocessing.cpu_count
asyncio.run asyncio.sleep asyncio.gather asyncio.create_task asyncio.wait_for asyncio.wait asyncio.Queue asyncio.Lock
asyncio.Semaphore asyncio.Event asyncio.TimeoutError asyncio.CancelledError asyncio.timeout asyncio.TaskGroup
asyncio.as_completed asyncio.ensure_future asyncio.get_running_loop asyncio.get_event_loop asyncio.Task asyncio.Future
asyncio.to_thread
"""

_BUILTINS = """
ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError
BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError
ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning EnvironmentError Exception ExceptionGroup
False FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError
ImportWarning IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError
MemoryError ModuleNotFoundError NameError None NotADirectoryError NotImplemented NotImplementedError OSError
OverflowError PendingDeprecationWarning PermissionError ProcessLookupError RecursionError ReferenceError
ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError
SystemExit TabError TimeoutError True TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError
UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError __debug__ __doc__ __name__
__file__ __annotations__ abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict
dir divmod enumerate exit filter float format frozenset hasattr hash hex id input int isinstance issubclass iter len
list map max memoryview min next object oct ord pow print property quit range repr reversed round set slice sorted
staticmethod str sum super tuple type vars zip getattr setattr delattr
"""

_OS_HARMLESS = """
sep altsep extsep pathsep linesep name curdir pardir devnull cpu_count fspath fsencode fsdecode getpid getppid urandom
PathLike SEEK_SET SEEK_CUR SEEK_END O_RDONLY O_WRONLY O_RDWR O_CREAT O_EXCL O_TRUNC O_APPEND R_OK W_OK X_OK F_OK error
get_terminal_size times uname strerror getloadavg
"""
_OS_PROCESS = """
system popen fork forkpty startfile execl execle execlp execlpe execv execve execvp execvpe spawnl spawnle spawnlp
spawnlpe spawnv spawnve spawnvp spawnvpe posix_spawn posix_spawnp _execvpe _spawnvef
"""
_SYS_HARMLESS = """
argv stdin stdout stderr exit version version_info platform maxsize float_info int_info hash_info byteorder getsizeof
getrecursionlimit setrecursionlimit executable intern exc_info flags implementation maxunicode getdefaultencoding
getfilesystemencoding getrefcount hexversion copyright api_version set_int_max_str_digits get_int_max_str_digits
prefix base_prefix stdlib_module_names builtin_module_names exception
"""

RULES: dict[str, Rule] = {
    **_rows(HARMLESS, _HARMLESS_MODULES),
    **_rows(HARMLESS, _OS_HARMLESS, "os."),
    **_rows(HARMLESS, _SYS_HARMLESS, "sys."),
    **_rows(HARMLESS, "path.join path.basename path.dirname path.splitext path.split path.sep path.normpath", "os."),
    **_rows(HARMLESS, "path.isabs path.commonpath path.commonprefix path.normcase path.splitdrive path.relpath", "os."),
    **_rows(UNKNOWN, "os sys io asyncio shutil http urllib xml unittest yaml concurrent codecs multiprocessing timeit"),
    **_rows(UNKNOWN, "string.Formatter dataclasses.make_dataclass typing.get_type_hints types.prepare_class"),
    **_rows(UNKNOWN, "numpy.lib numpy.core numpy._core numpy.testing numpy.compat pandas.io pandas.core pandas.compat"),
    **_rows(UNKNOWN, "pandas.util pandas.testing pandas.api.extensions argparse.FileType atexit._run_exitfuncs signal"),
    **_effect(
        EffectKind.READ, "listdir scandir walk fwalk stat lstat fstat access getcwd getcwdb readlink read", "os."
    ),
    **_effect(EffectKind.READ, "os.path glob linecache fileinput filecmp mimetypes shutil.which shutil.disk_usage"),
    **_effect(EffectKind.READ, "xml.etree.ElementTree.parse xml.etree.ElementTree.iterparse io.open_code"),
    **_effect(EffectKind.READ, "numpy.loadtxt numpy.genfromtxt numpy.fromfile numpy.load"),
    **_effect(
        EffectKind.READ, "read_csv read_json read_excel read_parquet read_table read_feather read_fwf", "pandas."
    ),
    **_effect(
        EffectKind.READ, "read_xml read_orc read_html read_sql read_sql_query read_sql_table read_hdf", "pandas."
    ),
    **_effect(EffectKind.WRITE, "mkdir makedirs rename renames replace chmod chown link symlink truncate utime", "os."),
    **_effect(EffectKind.WRITE, "open write fdopen chdir mkfifo ftruncate sendfile", "os."),
    **_effect(EffectKind.WRITE, "copy copy2 copyfile copyfileobj copytree copymode copystat move chown", "shutil."),
    **_effect(EffectKind.WRITE, "make_archive unpack_archive", "shutil."),
    **_effect(EffectKind.WRITE, "tempfile zipfile tarfile gzip.open bz2.open lzma.open io.FileIO sqlite3 dbm mmap"),
    **_effect(EffectKind.WRITE, "logging.FileHandler logging.handlers codecs.open pandas.ExcelWriter pandas.HDFStore"),
    **_effect(EffectKind.WRITE, "save savez savez_compressed savetxt memmap", "numpy."),
    **_effect(EffectKind.DELETE, "os.remove os.unlink os.rmdir os.removedirs shutil.rmtree"),
    **_effect(
        EffectKind.ADMIN, "setuid setgid seteuid setegid setreuid setgroups kill killpg chroot nice umask", "os."
    ),
    **_effect(
        EffectKind.NETWORK, "socket socketserver ssl urllib.request http.client http.server http.cookiejar ftplib"
    ),
    **_effect(
        EffectKind.NETWORK, "telnetlib nntplib xmlrpc requests httpx urllib3 aiohttp websockets websocket wsgiref"
    ),
    **_effect(EffectKind.NETWORK, "asyncio.open_connection asyncio.start_server poplib imaplib"),
    **_effect(EffectKind.NETWORK, "asyncio.open_unix_connection asyncio.start_unix_server"),
    **_effect(EffectKind.COMMUNICATE, "smtplib twilio slack_sdk sendgrid logging.handlers.SMTPHandler syslog"),
    **_effect(
        EffectKind.SECRET, "os.environ os.environb os.getenv os.getenvb os.putenv os.unsetenv getpass keyring pwd spwd"
    ),
    **_danger(Danger.PROCESS, _OS_PROCESS, "os."),
    **_danger(
        Danger.PROCESS, "subprocess pty webbrowser pexpect sh plumbum commands popen2 _posixsubprocess invoke fabric"
    ),
    **_danger(
        Danger.PROCESS, "multiprocessing.Process multiprocessing.Pool multiprocessing.Manager multiprocessing.pool"
    ),
    **_danger(Danger.PROCESS, "multiprocessing.get_context multiprocessing.process multiprocessing.context"),
    **_danger(
        Danger.PROCESS, "multiprocessing.managers concurrent.futures.ProcessPoolExecutor concurrent.futures.process"
    ),
    **_danger(Danger.PROCESS, "asyncio.create_subprocess_exec asyncio.create_subprocess_shell asyncio.subprocess"),
    **_danger(Danger.DYNAMIC, "eval exec compile __import__ breakpoint help execfile reload"),
    **_danger(
        Danger.DYNAMIC, "importlib imp runpy code codeop pdb bdb doctest cProfile profile trace pkgutil pydoc zipimport"
    ),
    **_danger(
        Danger.DYNAMIC, "timeit.timeit timeit.repeat timeit.Timer timeit.main pandas.eval numpy.f2py numexpr site"
    ),
    **_danger(
        Danger.DYNAMIC, "ensurepip pip setuptools distutils venv unittest.mock logging.config idlelib lib2to3 cffi"
    ),
    **_danger(
        Danger.DYNAMIC, "typing.ForwardRef types.FunctionType types.LambdaType types.CodeType types.new_class cython"
    ),
    **_danger(
        Danger.DESERIALISE, "pickle marshal shelve dill cloudpickle jsonpickle copyreg joblib torch.load pickletools"
    ),
    **_danger(
        Danger.DESERIALISE, "yaml.load yaml.load_all yaml.unsafe_load yaml.unsafe_load_all yaml.full_load yaml.Loader"
    ),
    **_danger(
        Danger.DESERIALISE, "yaml.full_load_all yaml.UnsafeLoader yaml.FullLoader yaml.CLoader pandas.read_pickle"
    ),
    **_rows(Rule(effect=EffectKind.WRITE), "open io.open"),
    **_danger(Danger.REFLECT, "getattr setattr delattr operator.attrgetter operator.methodcaller"),
    **_danger(
        Danger.REFLECT, "builtins __builtins__ __loader__ __spec__ __main__ ctypes gc inspect sys.modules sys._getframe"
    ),
    **_danger(
        Danger.REFLECT,
        "sys.settrace sys.setprofile sys.meta_path sys.path_hooks sys.path_importer_cache globals locals",
    ),
    **_danger(
        Danger.REFLECT,
        "sys._current_frames sys.breakpointhook sys.excepthook sys.addaudithook sys.displayhook types.ModuleType",
    ),
    **_danger(
        Danger.REFLECT, "types.FrameType types.MethodType traceback.walk_tb traceback.walk_stack numpy.ctypeslib"
    ),
    **_danger(
        Danger.REFLECT, "threading.settrace threading.setprofile sys.unraisablehook sys.call_tracing dis symtable"
    ),
    **_danger(
        Danger.OBFUSCATE,
        "codecs.decode codecs.encode codecs.register codecs.lookup codecs.getdecoder codecs.getencoder encodings",
    ),
}

BUILTINS = words(_BUILTINS)
DANGEROUS_BUILTINS = frozenset({name for name, rule in RULES.items() if rule.danger and "." not in name}) & frozenset(
    {"eval", "exec", "compile", "breakpoint", "help", "globals", "locals", "execfile", "reload"}
    | {"__import__", "__builtins__", "__loader__", "__spec__"}
)

ALIASES = {"posix": "os", "nt": "os", "posixpath": "os.path", "ntpath": "os.path", "cPickle": "pickle", "_io": "io"}
"""The same module under another name."""

SAFE_DUNDERS = words("""
__init__ __name__ __qualname__ __doc__ __file__ __version__ __all__ __annotations__ __post_init__ __enter__ __exit__
__aenter__ __aexit__ __iter__ __next__ __aiter__ __anext__ __len__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__
__str__ __repr__ __bool__ __int__ __float__ __add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __neg__
__contains__ __getitem__ __setitem__ __delitem__ __call__ __new__ __format__ __abs__ __radd__ __rmul__ __rsub__
__and__ __or__ __xor__ __invert__ __cause__ __context__ __traceback__ __slots__ __module__ __members__ __fields__
__index__ __author__ __init_subclass__ __set_name__ __copy__ __deepcopy__ __missing__ __round__ __del__ __await__
__reversed__
""")
"""Attributes with two underscores that lead nowhere; every other one is reflection."""

ATTRIBUTE_CALLS = frozenset({"__setattr__", "__delattr__", "__getattribute__", "__getattr__"})
"""Allowed where the attribute they name is written out."""

REFLECTIVE_ATTRIBUTES = words("""
gi_frame gi_code cr_frame cr_code ag_frame ag_code tb_frame f_globals f_locals f_builtins f_back f_code f_trace
func_globals func_code im_func im_self co_code co_consts mro _module _os _sys _subprocess _builtins
""")
DANGEROUS_METHODS = {
    "subprocess_exec": Danger.PROCESS,
    "subprocess_shell": Danger.PROCESS,
    "load_extension": Danger.DYNAMIC,
    "enable_load_extension": Danger.DYNAMIC,
    "exec_module": Danger.DYNAMIC,
    "load_module": Danger.DYNAMIC,
    "read_pickle": Danger.DESERIALISE,
}

_PATH_METHODS: dict[str, EffectKind] = {
    **dict.fromkeys(
        words("read_text read_bytes iterdir glob rglob cwd home exists is_file is_dir stat"), EffectKind.READ
    ),
    **dict.fromkeys(
        words("write_text write_bytes mkdir touch rename chmod symlink_to hardlink_to open"), EffectKind.WRITE
    ),
    **dict.fromkeys(words("unlink rmdir"), EffectKind.DELETE),
}
_FRAME_METHODS: dict[str, EffectKind] = {
    **dict.fromkeys(
        words("to_csv to_json to_excel to_parquet to_feather to_hdf to_html tofile to_sql"), EffectKind.WRITE
    ),
    **dict.fromkeys(words("to_pickle dump to_clipboard"), EffectKind.WRITE),
    **dict.fromkeys(words("query eval"), EffectKind.UNRESOLVED),
}
_LOOP_METHODS = words("create_connection create_server create_datagram_endpoint sock_connect create_unix_connection")

METHODS_OF: dict[str, dict[str, EffectKind]] = {
    "pathlib": _PATH_METHODS,
    "pandas": _FRAME_METHODS,
    "numpy": _FRAME_METHODS,
    "xml": {"write": EffectKind.WRITE},
    "configparser": {"read": EffectKind.READ},
    "asyncio": dict.fromkeys(_LOOP_METHODS, EffectKind.NETWORK),
}
"""What a method does to a value we do not know, by the library that makes such values."""

TEXT_CODE = words("query eval")
"""Methods of a data frame that take an expression as text: harmless where it is written out and plain."""
