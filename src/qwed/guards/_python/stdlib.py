"""Rule tables of the standard library; `library_rules` describes the format."""

TABLE = """
HARMLESS : pickletools multiprocessing.cpu_count multiprocessing.current_process multiprocessing.freeze_support
 multiprocessing.active_children multiprocessing.TimeoutError sre_constants sre_parse sre_compile this
 _collections_abc http.HTTPStatus http.HTTPMethod http.client.responses http.client.HTTPException timeit.default_timer
 codecs.BOM_UTF8 codecs.BOM_UTF16 codecs.BOM_UTF16_LE codecs.BOM_UTF16_BE
 codecs.BOM_UTF32 codecs.lookup_error codecs.IncrementalDecoder codecs.getincrementaldecoder codecs.IncrementalEncoder
 codecs.StreamReader codecs.StreamWriter codecs.Codec codecs.CodecInfo codecs.lookup codecs.register_error
 codecs.utf_8_encode codecs.utf_8_decode codecs.getreader codecs.getwriter codecs.strict_errors
 importlib.util.MAGIC_NUMBER importlib.util.source_hash importlib.machinery.ModuleSpec
 importlib.machinery.SOURCE_SUFFIXES importlib.machinery.EXTENSION_SUFFIXES importlib.machinery.BYTECODE_SUFFIXES
 importlib.machinery.all_suffixes
 socket.timeout socket.error socket.gaierror
 socket.AF_INET socket.AF_INET6 socket.SOCK_STREAM socket.SOCK_DGRAM socket.inet_aton socket.inet_ntoa
 socket.inet_pton socket.inet_ntop socket.htons socket.ntohs socket.htonl socket.ntohl resource.getrusage
 resource.getrlimit resource.RUSAGE_SELF resource.RUSAGE_CHILDREN resource.getpagesize resource.RLIMIT_AS ssl.SSLError
 ssl.CERT_NONE ssl.CERT_REQUIRED shutil.get_terminal_size shutil.Error shutil.SameFileError sqlite3.Error sqlite3.Row
 sqlite3.IntegrityError sqlite3.OperationalError sqlite3.DatabaseError sqlite3.Connection sqlite3.Cursor
 sqlite3.ProgrammingError zipfile.BadZipFile zipfile.ZIP_DEFLATED zipfile.ZIP_STORED zipfile.LargeZipFile
 zipfile.ZipInfo tarfile.TarError tarfile.TarInfo tarfile.ReadError mimetypes.guess_type mimetypes.guess_extension
 mimetypes.guess_all_extensions linecache.clearcache filecmp.clear_cache fcntl.LOCK_EX fcntl.LOCK_SH fcntl.LOCK_UN
 fcntl.LOCK_NB fcntl.flock fcntl.lockf mmap.PAGESIZE mmap.ACCESS_READ tempfile.gettempprefix
 shutil.ignore_patterns shutil.get_archive_formats wave.Error msvcrt winsound smtplib.SMTPException
HARMLESS : pickle.dumps pickle.dump pickle.HIGHEST_PROTOCOL pickle.DEFAULT_PROTOCOL pickle.PicklingError
 pickle.PickleError pickle.Pickler pickle.UnpicklingError _weakrefset _markupbase _py_abc _elementtree _sha1
 codecs.BOM_UTF32_BE codecs.BOM_UTF32_LE thread dummy_thread _dummy_thread dummy_threading _md5 _sha256 _sha512 _sha2
 _blake2 _sha3 _strptime pyexpat _struct _json codecs.escape_decode codecs.charmap_decode codecs.charmap_encode
 codecs.charmap_build sys.audit importlib.util.cache_from_source marshal.version codecs.BufferedIncrementalEncoder
 codecs.BufferedIncrementalDecoder tokenize.tokenize importlib.metadata.version
 importlib.metadata.PackageNotFoundError
HARMLESS string.Formatter().: get_field format vformat
HARMLESS sqlite3().: cursor
WRITE sqlite3().: execute executescript executemany
HARMLESS : sqlite3.Connection
HARMLESS ctypes.: c_bool c_byte c_char c_double c_float c_int c_int8 c_int16 c_int32 c_int64 c_long c_longlong c_short
 c_size_t c_ubyte c_uint c_uint8 c_uint16 c_uint32 c_uint64 c_ulong c_ulonglong c_ushort sizeof alignment ArgumentError
HARMLESS os.: getcwd getcwdb path.realpath get_blocking major minor makedev defpath sep altsep extsep
 pathsep linesep name curdir pardir devnull cpu_count fspath fsencode fsdecode getpid getppid urandom PathLike
 SEEK_SET SEEK_CUR SEEK_END O_RDONLY O_WRONLY O_RDWR O_CREAT O_EXCL O_TRUNC O_APPEND O_NONBLOCK O_BINARY R_OK W_OK
 X_OK F_OK error get_terminal_size terminal_size times uname strerror getloadavg stat_result DirEntry close isatty
 sched_getaffinity getuid geteuid getgid getegid _exit supports_follow_symlinks WEXITSTATUS WIFEXITED EX_OK
 EX_USAGE dup dup2 pipe waitpid path.join path.basename path.dirname path.splitext path.split path.sep path.normpath
 path.isabs path.commonpath path.commonprefix path.normcase path.splitdrive path.relpath path.abspath path.expanduser
 path.altsep path.extsep path.pardir path.curdir path.pathsep path.devnull path.supports_unicode_filenames
HARMLESS sys.: argv stdin stdout stderr __stdin__ __stdout__ __stderr__ exit version version_info platform maxsize
 float_info int_info hash_info byteorder getsizeof getrecursionlimit setrecursionlimit executable intern exc_info
 flags implementation maxunicode getdefaultencoding getfilesystemencoding getrefcount hexversion copyright api_version
 set_int_max_str_digits get_int_max_str_digits prefix base_prefix exec_prefix stdlib_module_names builtin_module_names
 exception excepthook displayhook unraisablehook __excepthook__ __displayhook__ ps1 ps2 tracebacklimit warnoptions
 getswitchinterval setswitchinterval float_repr_style thread_info getfilesystemencodeerrors is_finalizing
 get_asyncgen_hooks set_asyncgen_hooks dont_write_bytecode winver getwindowsversion gettrace getprofile last_value
 exc_clear maxint last_type last_traceback get_coroutine_origin_tracking_depth orig_argv activate_stack_trampoline
 pycache_prefix
UNKNOWN : ctypes os sys shutil http urllib xml concurrent codecs multiprocessing timeit importlib wsgiref resource
 fcntl dataclasses.make_dataclass types.prepare_class atexit._run_exitfuncs mmap
READ os.: listdir scandir walk fwalk stat lstat fstat access readlink read pread statvfs path getxattr listxattr
 getlogin
READ : pkgutil.iter_modules glob linecache fileinput filecmp mimetypes shutil.which shutil.disk_usage
 xml.etree.ElementTree.parse xml.etree.ElementTree.iterparse xml.dom.minidom.parse xml.sax.parse io.open_code imghdr
 sndhdr pyclbr tabnanny modulefinder pkgutil.get_data importlib.metadata importlib.resources grp pstats zipfile.Path
 tokenize.open configparser.ConfigParser().read configparser.RawConfigParser().read mailcap configparser().read
 inspect.getsource inspect.getsourcelines inspect.getsourcefile inspect.getfile gettext.translation gettext.install
 readline.read_history_file importlib.util.spec_from_file_location
READ pathlib.Path().: read_text read_bytes iterdir glob rglob exists is_file is_dir is_symlink stat lstat walk owner
 group is_mount samefile readlink is_block_device is_char_device is_fifo is_socket is_junction info
WRITE os.: mkdir makedirs mkfifo mknod rename renames replace chmod lchmod chown lchown fchmod fchown link symlink
 truncate ftruncate utime open write pwrite writev fdopen chdir fchdir sendfile copy_file_range setxattr memfd_create
WRITE shutil.: move make_archive unpack_archive copymode copystat chown copyfileobj
READ+WRITE shutil.: copy copy2 copyfile copytree
WRITE : tempfile dbm mmap.mmap logging.FileHandler logging.handlers io.FileIO py_compile compileall zipapp mailbox uu
 binhex faulthandler.dump_traceback_later multiprocessing.shared_memory plistlib.writePlist
 readline.write_history_file xml.etree.ElementTree.ElementTree().write xml.etree.ElementTree.parse().write
 configparser().write_file sunau aifc
WRITE pathlib.Path().: write_text write_bytes mkdir touch rename replace chmod lchmod symlink_to hardlink_to link_to
 copy copy_into move move_into
WRITE zipfile.ZipFile().: extract extractall write writestr
WRITE tarfile.open().: extract extractall add addfile
WRITE tarfile.TarFile().: extract extractall add addfile
WRITE : tarfile.TarFile.extractall zipfile.ZipFile.extractall pathlib.Path.write_text pathlib.Path.write_bytes
DELETE : os.remove os.unlink os.rmdir os.removedirs shutil.rmtree pathlib.Path().unlink pathlib.Path().rmdir
 pathlib.Path.unlink pathlib.Path.rmdir os.removexattr
ADMIN os.: setuid setgid seteuid setegid setreuid setregid setresuid setgroups initgroups kill killpg chroot nice
 umask setpriority sched_setscheduler sched_setaffinity setsid setpgid mount unshare setns pidfd_open
ADMIN : resource.setrlimit resource.prlimit winreg signal.pthread_kill signal.raise_signal signal.pidfd_send_signal
 fcntl.ioctl fcntl.fcntl time.clock_settime socket.sethostname gc.freeze
NETWORK : socket socketserver ssl urllib.request urllib.robotparser http.client http.server http.cookiejar ftplib
 telnetlib nntplib xmlrpc wsgiref.simple_server asyncio.open_connection asyncio.start_server poplib imaplib asyncore
 asynchat nis asyncio.open_unix_connection asyncio.start_unix_server logging.handlers.SocketHandler
 logging.handlers.DatagramHandler logging.handlers.HTTPHandler multiprocessing.connection
NETWORK asyncio().: create_connection create_server create_datagram_endpoint sock_connect create_unix_connection
 create_unix_server getaddrinfo sock_sendall
COMMUNICATE : smtplib smtpd syslog logging.handlers.SMTPHandler logging.handlers.SysLogHandler
SECRET os.: environ environb getenv getenvb putenv unsetenv
SECRET : getpass pwd spwd netrc
HARMLESS : getpass.getuser logging.handlers.QueueHandler logging.handlers.QueueListener logging.handlers.MemoryHandler
 logging.handlers.BufferingHandler
PROCESS os.: system popen fork forkpty startfile execl execle execlp execlpe execv execve execvp execvpe spawnl
 spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe posix_spawn posix_spawnp _execvpe _spawnvef login_tty
PROCESS : antigravity subprocess pty webbrowser commands popen2 _posixsubprocess multiprocessing.Process
 multiprocessing.Pool multiprocessing.Manager multiprocessing.pool multiprocessing.get_context multiprocessing.process
 multiprocessing.context multiprocessing.managers multiprocessing.spawn multiprocessing.set_executable
 multiprocessing.popen_fork multiprocessing.util multiprocessing.popen_spawn_posix multiprocessing.forkserver
 concurrent.futures.ProcessPoolExecutor concurrent.futures.process asyncio.create_subprocess_exec
 asyncio.create_subprocess_shell asyncio.subprocess pipes mailcap.findmatch _winapi platform.popen
 ctypes.util.find_library asyncio.SubprocessProtocol
PROCESS asyncio().: subprocess_exec subprocess_shell
DYNAMIC : eval exec compile __import__ breakpoint help execfile reload importlib.import_module importlib.__import__
 importlib.reload importlib.util.module_from_spec importlib.util.spec_from_loader importlib.util.LazyLoader
 importlib.util.set_loader importlib.util.module_for_loader importlib.util.resolve_name importlib.util._LazyModule
 importlib.machinery.SourceFileLoader importlib.machinery.SourcelessFileLoader importlib.machinery.ExtensionFileLoader
 importlib.machinery.FileFinder importlib.machinery.PathFinder importlib.machinery.BuiltinImporter
 importlib.machinery.FrozenImporter importlib._bootstrap importlib._bootstrap_external importlib.metadata.EntryPoint
 importlib.metadata.EntryPoint().load imp runpy code codeop pdb bdb pkgutil.walk_packages pkgutil.resolve_name
 pkgutil.get_loader pkgutil.find_loader pkgutil.ImpImporter pkgutil.ImpLoader unittest.TestLoader().loadTestsFromName
 unittest().loadTestsFromName unittest().discover unittest.defaultTestLoader tkinter().eval tkinter().call tkinter.Tcl
 site.addsitedir site.main site.execsitecustomize site.execusercustomize site.addpackage distutils.core.run_setup
 distutils.spawn doctest.run_docstring_examples doctest.testfile cProfile.run cProfile.runctx profile.run
 profile.runctx cProfile().run cProfile().runctx profile().run profile().runctx trace().run trace().runctx
 doctest.debug doctest.debug_src doctest.DocTestRunner doctest.script_from_examples pydoc zipimport timeit.timeit
 timeit.repeat timeit.Timer timeit.main ensurepip venv logging.config idlelib lib2to3 typing.ForwardRef
 types.FunctionType types.LambdaType types.CodeType types.new_class rlcompleter inspect.getmodule typing._eval_type
 _xxsubinterpreters _interpreters typing.get_type_hints inspect.get_annotations _testcapi _testinternalcapi
 pathlib._normal_accessor builtins.eval builtins.exec builtins.compile builtins.__import__ builtins.breakpoint
 builtins.help sys.activate_stack_trampoline dataclasses._create_fn collections._namedtuple symtable._symtable
 pyexpat.ParserCreate._ unittest.mock._importer sqlite3().load_extension sqlite3().enable_load_extension turtledemo
 ctypes.util _imp
EXECUTE : distutils.core.setup
HARMLESS : distutils typing.get_type_hints inspect.get_annotations
PROCESS : imaplib.IMAP4_stream asyncio.windows_utils
DYNAMIC : optparse().read_file optparse().read_module optparse.Values().read_file optparse.Values().read_module
 trace.main cProfile.main profile.main cgi.test doctest.debug_script doctest.testsource doctest.DocFileSuite
 doctest.DocTestSuite doctest.DocFileTest doctest.DebugRunner gettext.c2py turtle.read_docstrings
 unittest.TestLoader().discover unittest.loader unittest.main.TestProgram unittest().getter unittest().get_original
 unittest().temp_original unittest().in_dict pkgutil.iter_importers tkinter().readprofile tkinter.Tk().readprofile
 importlib.abc.InspectLoader xml.dom.getDOMImplementation xml.dom.domreg
READ : traceback.FrameSummary traceback.StackSummary.from_list traceback.format_list traceback.print_list
 warnings.formatwarning warnings.showwarning warnings.warn_explicit warnings.WarningMessage zoneinfo.reset_tzpath
UNKNOWN : unittest().target
SECRET : cgi.print_environ cgi.test wsgiref.handlers.read_environ wsgiref.handlers.CGIHandler
 wsgiref.handlers.BaseCGIHandler wsgiref.handlers.IISCGIHandler wsgiref.handlers.BaseHandler
 wsgiref.handlers.SimpleHandler
READ : zipfile.is_zipfile xml.sax.expatreader platform.freedesktop_os_release tracemalloc.Traceback tracemalloc.Frame
 tracemalloc.Statistic tracemalloc.Trace trace.Trace trace.CoverageResults xml.sax.saxutils.XMLFilterBase
WRITE : tempfile.gettempdir multiprocessing.Array multiprocessing.Value multiprocessing.RawArray
 multiprocessing.RawValue multiprocessing.Queue multiprocessing.Lock
ADMIN : contextlib.chdir
DYNAMIC : unittest.TestProgram importlib.abc.SourceLoader importlib.abc.FileLoader importlib.abc.ExecutionLoader
 importlib.abc.Loader importlib.abc.ResourceLoader
UNKNOWN inspect.: classify_class_attrs
DESERIALISE : tracemalloc.Snapshot().load tracemalloc.Snapshot.load trace.CoverageResults pkgutil.read_code
READ : xml.dom.pulldom.parse xml.dom.expatbuilder.parse xml.dom.expatbuilder.parseFragment
 xml.etree.ElementTree.ElementTree().parse xml.sax.make_parser().parse xml.etree.ElementInclude inspect.findsource
 inspect.getcomments platform.libc_ver readline.read_init_file turtle.config_dict turtle.readconfig
 tkinter.filedialog.askopenfile tkinter.filedialog.askopenfiles pkgutil.extend_path shlex().sourcehook
 linecache.getlines xml.sax.saxutils.prepare_input_source
READ+WRITE : base64.main quopri.main tokenize.main ast.main dis.main json.tool gzip.main calendar.main
 pickletools.main
WRITE : tracemalloc.Snapshot().dump tracemalloc.take_snapshot().dump tracemalloc().dump cgi.initlog cgi.log
 cgitb.enable cgitb.Hook cProfile().dump_stats profile().dump_stats trace().write_results trace().write_results_file
 readline.append_history_file turtle().postscript tkinter().postscript turtle.write_docstringdict
 tkinter.filedialog.asksaveasfile xml.etree.ElementTree.ElementTree().write_c14n
NETWORK : xml.dom.xmlbuilder
DESERIALISE : pickle marshal shelve copyreg.pickle copyreg.add_extension copyreg.constructor _pickle
 copyreg._reconstructor copyreg.__newobj__
REFLECT : getattr setattr delattr operator.attrgetter operator.methodcaller builtins __builtins__ __loader__ __spec__
 __main__ globals license credits copyright gc.get_objects gc.get_referrers gc.get_referents gc.callbacks gc.garbage
 gc.set_debug inspect.getasyncgenlocals inspect.currentframe inspect.stack inspect.trace inspect.getouterframes
 inspect.getinnerframes inspect.getframeinfo inspect.getclosurevars inspect.getgeneratorlocals
 inspect.getcoroutinelocals inspect.sys inspect.getmembers_static sys.modules sys._getframe sys._getframemodulename
 sys.settrace sys.setprofile sys.meta_path sys.path_hooks sys.path_importer_cache sys._current_frames
 sys._current_exceptions sys.breakpointhook sys.addaudithook sys.call_tracing sys._git sys._debugmallocstats
 sys.setdlopenflags sys._clear_type_cache types.ModuleType types.FrameType types.CellType types.TracebackType
 traceback.walk_tb traceback.walk_stack threading.settrace threading.setprofile threading.settrace_all_threads
 warnings()._module ctypes.CDLL ctypes.PyDLL ctypes.WinDLL ctypes.OleDLL ctypes.cdll ctypes.windll ctypes.pydll
 ctypes.oledll ctypes.pythonapi ctypes.LibraryLoader ctypes.CFUNCTYPE ctypes.PYFUNCTYPE ctypes.WINFUNCTYPE
 ctypes.py_object ctypes.cast ctypes.memmove ctypes.memset ctypes.string_at ctypes.wstring_at ctypes.dlopen
 ctypes._dlopen ctypes.addressof ctypes.from_address ctypes.macholib builtins.getattr builtins.setattr
 builtins.delattr builtins.globals builtins.locals builtins.vars
HARMLESS builtins.: print len int str list dict set tuple float bool range enumerate zip map filter sorted sum min max
 abs any all open input repr isinstance issubclass type object super property staticmethod classmethod Exception
 ValueError TypeError KeyError IndexError BaseException hash id iter next reversed round chr ord bytes bytearray
 frozenset complex divmod pow format hex oct bin callable slice memoryview ascii StopIteration NotImplementedError
HARMLESS : inspect.signature inspect.Parameter inspect.Signature dis
OBFUSCATE : codecs.decode codecs.encode codecs.register codecs.getdecoder codecs.getencoder encodings
READ+WRITE : open io.open codecs.open gzip.open bz2.open lzma.open gzip.GzipFile bz2.BZ2File lzma.LZMAFile tarfile
 zipfile wave sqlite3 os.fdopen pathlib.Path().open builtins.open argparse.FileType
UNKNOWN : importlib.util.find_spec unittest.mock.patch unittest.mock.patch.dict unittest.mock.patch.multiple
 email.utils.make_msgid
HARMLESS : unittest.mock.patch.object unittest.mock.patch.stopall unittest.defaultTestLoader.loadTestsFromTestCase
UNKNOWN ctypes().: from_address in_dll
HARMLESS ctypes.: Structure Union BigEndianStructure LittleEndianStructure create_string_buffer
UNKNOWN argparse().: fromfile_prefix_chars
UNKNOWN unittest().: loadTestsFromNames
UNKNOWN asyncio().: add_signal_handler remove_signal_handler
NETWORK asyncio().: getnameinfo start_tls
UNKNOWN xml().: setFeature setProperty
READ : zipfile.is_zipfile tracemalloc().format
"""

_PATH_AGAIN = """
parent absolute expanduser with_name with_suffix with_stem joinpath relative_to resolve iterdir glob rglob rename
replace readlink parents walk
"""
_PATH_CLASSES = "PosixPath WindowsPath"

RETURNS: dict[str, str] = {
    **{f"pathlib.Path().{name}": "pathlib.Path()" for name in ("parent", "parents")},
    **{f"pathlib.Path().{name}()": "pathlib.Path()" for name in _PATH_AGAIN.split()},
    **{f"pathlib.{name}": "pathlib.Path" for name in _PATH_CLASSES.split()},
    "pathlib.Path.home()": "pathlib.Path()",
    "pathlib.Path.cwd()": "pathlib.Path()",
    "importlib.resources.files()": "pathlib.Path()",
    "tarfile.TarFile.open": "tarfile.open",
    "tarfile.TarFile.open()": "tarfile.open()",
}
"""Names with the meaning of another, including aliases of classes."""

_ASSUMED_MODULES = """
os sys subprocess shutil socket pickle marshal shelve ctypes importlib runpy pty codecs base64 inspect gc
multiprocessing asyncio urllib http ftplib smtplib telnetlib tempfile pathlib glob zipfile tarfile sqlite3 webbrowser
threading logging json re math random time datetime itertools functools collections operator string types typing copy
struct hashlib hmac secrets io csv textwrap traceback warnings contextlib concurrent cPickle posix nt winreg pwd
socketserver xmlrpc ssl getpass timeit doctest pdb cProfile heapq bisect decimal fractions statistics enum dataclasses
abc weakref unicodedata uuid zlib gzip bz2 lzma binascii html xml argparse platform signal errno stat locale pprint
difflib urllib2 imp mmap fcntl zoneinfo numbers keyword ast tokenize token queue select selectors shlex email
"""

ASSUMED: dict[str, str] = {
    "Path": "pathlib.Path",
    "Popen": "subprocess.Popen",
    "check_output": "subprocess.check_output",
    "check_call": "subprocess.check_call",
    "system": "os.system",
    "popen": "os.popen",
    "execvp": "os.execvp",
    "environ": "os.environ",
    "getenv": "os.getenv",
    "rmtree": "shutil.rmtree",
    "copytree": "shutil.copytree",
    "urlopen": "urllib.request.urlopen",
    "urlretrieve": "urllib.request.urlretrieve",
    "import_module": "importlib.import_module",
    "create_connection": "socket.create_connection",
    "unlink": "os.unlink",
    "ProcessPoolExecutor": "concurrent.futures.ProcessPoolExecutor",
    "CDLL": "ctypes.CDLL",
    "NamedTemporaryFile": "tempfile.NamedTemporaryFile",
    "FunctionType": "types.FunctionType",
    "CodeType": "types.CodeType",
    "unhexlify": "binascii.unhexlify",
    "b64decode": "base64.b64decode",
    "attrgetter": "operator.attrgetter",
    "methodcaller": "operator.methodcaller",
    "reduce": "functools.reduce",
    **{name: name for name in _ASSUMED_MODULES.split()},
}

BUILTINS = """
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
__file__ __annotations__ __package__ __path__ __all__ __version__ __qualname__ __module__ __class__ __cached__
abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict dir divmod enumerate exit
filter float format frozenset hasattr hash hex id input int isinstance issubclass iter len list locals map max
memoryview min next object oct ord pow print property quit range repr reversed round set slice sorted staticmethod str
sum super tuple type vars zip getattr setattr delattr WindowsError unicode xrange raw_input basestring long unichr cmp
reveal_type __build_class__ _
"""
DANGEROUS_BUILTINS = """
eval exec compile breakpoint help globals execfile reload __import__ __builtins__ __loader__ __spec__ license credits
copyright
"""

ALIASES = {
    "posix": "os",
    "nt": "os",
    "posixpath": "os.path",
    "ntpath": "os.path",
    "cPickle": "pickle",
    "_io": "io",
    "_pickle": "pickle",
    "mock": "unittest.mock",
    "_socket": "socket",
    "_ctypes": "ctypes",
    "_signal": "signal",
    "_imp": "imp",
    "urllib2": "urllib.request",
    "httplib": "http.client",
    "SocketServer": "socketserver",
    "ConfigParser": "configparser",
    "StringIO": "io",
    "cStringIO": "io",
    "Queue": "queue",
    "__builtin__": "builtins",
}
"""Modules with more than one name."""
