"""Rule tables of common packages; `library_rules` describes the format. Any other package is unknown."""

TABLE = """
HARMLESS : numpy pandas scipy sympy statsmodels sklearn xgboost lightgbm catboost networkx numba tqdm rich click typer
 colorama termcolor tabulate prettytable attr attrs pydantic pydantic_core pydantic_settings.SettingsConfigDict
 marshmallow typing_extensions mypy_extensions six more_itertools toolz cytoolz sortedcontainers dateutil pytz arrow
 pendulum tzlocal humanize inflect regex chardet charset_normalizer idna packaging semver jsonschema ujson orjson
 simplejson rapidjson msgspec toml tomli tomlkit tomli_w markdown markdown2 mistune bs4 html5lib lxml defusedxml
 xmltodict cssselect soupsieve pyparsing lark ply parsimonious sqlparse sqlglot shapely geopy geopandas pyproj pint
 uncertainties mpmath gmpy2 bitarray bitstring cryptography Crypto nacl bcrypt passlib argon2 itsdangerous jwt jose
 josepy pyotp hypothesis pytest nose parameterized freezegun faker factory cachetools tenacity backoff retrying
 deprecated wrapt decorator pluggy blinker structlog loguru matplotlib seaborn plotly bokeh altair holoviews pygments
 tree_sitter polars pyarrow dask xarray cupy jax flax torch torchvision torchaudio tensorflow keras transformers
 tokenizers datasets spacy nltk gensim textblob thefuzz fuzzywuzzy rapidfuzz Levenshtein jellyfish unidecode emoji
 ftfy phonenumbers email_validator validators schema voluptuous cerberus werkzeug flask starlette fastapi django quart
 sanic tornado bottle falcon aiohttp.web wtforms flask_wtf flask_login rest_framework graphene strawberry ariadne
 uvloop
 anyio trio sniffio cattrs dacite pyrsistent immutables frozendict bidict intervaltree numexpr.__version__ z3 ortools
 pulp cvxpy simpy deap gym gymnasium PIL cv2 skimage imageio openpyxl docx pptx xlrd xlsxwriter pypdf PyPDF2
 pdfplumber reportlab fpdf pygame pyglet arcade qrcode barcode moviepy librosa soundfile pydub music21 biopython Bio
 rdkit ase pymatgen astropy sunpy einops opt_einsum accelerate peft tiktoken zstandard lz4 brotli snappy blake3 xxhash
 mmh3 ulid nanoid shortuuid hashids babel pycountry holidays workalendar pyfiglet art asciimatics prompt_toolkit
 questionary inquirer textual curtsies blessed urwid docopt fire configargparse absl exceptiongroup importlib_metadata
 zipp filelock.Timeout overrides injector dependency_injector returns result fn funcy pipe glom boltons jmespath
 jsonpath_ng deepdiff dictdiffer diff_match_patch ordered_set multidict yarl frozenlist aiosignal async_timeout
 asgiref httptools h11 h2 hpack wsproto markupsafe jinja2 mako chevron pystache yaml ruamel sqlalchemy.Column
 sqlmodel.Field prometheus_client opentelemetry sentry_sdk.set_tag zope pyasn1 asn1crypto OpenSSL certifi
 jax.numpy cloudpickle.__version__ tensorflow_probability torch_geometric pytorch_lightning lightning optuna
 featuretools shap lime eli5 mlxtend imblearn category_encoders umap hdbscan prophet pmdarima tslearn sktime lifelines
 pymc arviz emcee corner pgmpy pomegranate snowflake.__version__ nose2 pytest_asyncio pytest_mock setuptools_scm
 pkg_resources.parse_version uncertainties.ufloat tinycss2 mdurl markdown_it docutils commonmark tld tldextract
 publicsuffix2 user_agents ua_parser isodate iso8601 aniso8601 ciso8601 croniter rrule dateparser parsedatetime
 stdnum schwifty money moneyed forex_python.__version__ pyxirr numpy_financial quantlib yfinance.__version__
 pyspark.__version__ nbformat.__version__ greenlet gevent.__version__ eventlet.__version__ werkzeug.security
READ numpy.: loadtxt genfromtxt fromfile load
READ pandas.: read_csv read_json read_excel read_parquet read_table read_feather read_fwf read_xml read_orc read_html
 read_sql read_sql_query read_sql_table read_hdf read_stata read_sas read_spss read_clipboard ExcelFile
READ polars.: read_csv scan_csv read_parquet scan_parquet read_json read_ndjson read_excel read_ipc read_database
READ : pyarrow.parquet.read_table pyarrow.csv pyarrow.parquet.ParquetFile pyarrow.feather.read_feather pyarrow.fs
 pyarrow.dataset pyarrow.memory_map PIL.Image.open cv2.imread cv2.VideoCapture skimage.io.imread imageio.imread
 imageio.v2.imread imageio.v3.imread matplotlib.pyplot.imread openpyxl.load_workbook docx.Document pptx.Presentation
 xlrd.open_workbook pypdf.PdfReader PyPDF2.PdfReader PyPDF2.PdfFileReader pdfplumber.open fitz dotenv.dotenv_values
 lxml.etree.parse lxml.html.parse lxml.etree.iterparse lxml.objectify.parse toml.load_file geopandas.read_file
 xarray.open_dataset xarray.open_mfdataset soundfile.read librosa.load scipy.io.loadmat scipy.io.wavfile.read
 sklearn.datasets.load_files sklearn.datasets.load_svmlight_file torchvision.io.read_image dask.dataframe.read_csv
 dask.dataframe.read_parquet networkx.read_edgelist networkx.read_gml networkx.read_graphml networkx.read_adjlist
 astropy.io Bio.SeqIO.parse Bio.SeqIO.read nltk.data gensim.models.KeyedVectors.load_word2vec_format
 importlib_resources
 psutil watchdog decouple linecache2 magic.from_file filetype.guess exifread
 setproctitle.getproctitle GPUtil cpuinfo distro docx2txt textract tika camelot tabula easyocr pytesseract
 datasets.load_from_disk joblib.Memory flask.send_file flask.send_from_directory starlette.responses.FileResponse
 fastapi.responses.FileResponse starlette.staticfiles fastapi.staticfiles markdown.markdownFromFile mmcv pyreadstat
 geoip2.database h5py.is_hdf5 pydicom.dcmread nibabel.load SimpleITK.ReadImage
WRITE numpy.: memmap save savez savez_compressed savetxt
WRITE pandas().: to_csv to_json to_excel to_parquet to_feather to_hdf to_html to_sql to_stata to_orc to_xml to_latex
 to_markdown to_pickle to_clipboard to_gbq
WRITE : pandas.ExcelWriter pandas.HDFStore numpy().tofile numpy().dump polars().write_csv polars().write_parquet
 polars().write_json polars().write_ipc polars().sink_parquet polars().sink_csv pyarrow.parquet.write_table
 matplotlib.pyplot.savefig matplotlib.pyplot.imsave matplotlib().savefig matplotlib.backends.backend_pdf.PdfPages
 cv2.imwrite cv2.VideoWriter skimage.io.imsave imageio.imwrite imageio.mimsave imageio.get_writer PIL().save
 openpyxl().save docx().save pptx().save xlsxwriter.Workbook plotly.io.write_html plotly.io.write_image
 plotly().write_html plotly().write_image plotly.offline.plot bokeh.io.output_file bokeh.plotting.output_file
 bokeh.io.save altair().save torch.save torch.onnx.export torchvision.utils.save_image tensorflow.io.write_file
 keras().save tensorflow().save transformers().save_pretrained sklearn.datasets.dump_svmlight_file
 scipy.io.savemat scipy.io.wavfile.write soundfile.write h5py h5netcdf netCDF4 tables zarr pypdf.PdfWriter().write
 pypdf().write PyPDF2().write reportlab.pdfgen.canvas.Canvas fpdf().output lxml().write networkx.write_edgelist
 networkx.write_gml networkx.write_graphml networkx.write_gexf loguru.logger.add filelock portalocker dotenv.set_key
 joblib.dump geopandas().to_file xarray().to_netcdf moviepy().write_videofile gtts tinydb diskcache sqlitedict lmdb
 plyvel rocksdb leveldb git dulwich nltk.download spacy().to_disk gensim().save qrcode().save rich().save_html
 rich().export_html click.open_file typer.open_file pydub().export appdirs platformdirs.user_data_path
 send2trash pyfakefs ansible watchgod
HARMLESS : appdirs platformdirs
READ+WRITE : aiofiles click.File h5py.File smart_open jsonlines.open fsspec duckdb aiosqlite anyio.open_file
 anyio.Path trio.Path trio.open_file
DELETE : aiofiles.os.remove aiofiles.os.unlink aiofiles.os.rmdir send2trash.send2trash aioshutil.rmtree
NETWORK : requests httpx urllib3 aiohttp websockets websocket socketio engineio grpc pycurl treq httplib2 mechanize
 mechanicalsoup requests_html requests_oauthlib requests_toolbelt cloudscraper scrapy selenium playwright.sync_api
 playwright.async_api pyppeteer splinter zeep suds thrift Pyro4 Pyro5 rpyc zmq nanomsg pynng kombu pika aio_pika
 confluent_kafka kafka aiokafka nats stomp paho psycopg2 psycopg asyncpg pymysql MySQLdb mysql aiomysql cx_Oracle
 oracledb pyodbc pymssql pymongo motor redis aioredis memcache pymemcache pylibmc cassandra neo4j py2neo influxdb
 influxdb_client elasticsearch opensearchpy pysolr sqlalchemy sqlmodel peewee pony tortoise databases
 clickhouse_driver
 clickhouse_connect snowflake trino prestodb pyhive impala ldap ldap3 dns dnspython whois scapy nmap shodan impacket
 tldextract.TLDExtract feedparser newspaper wikipedia wikipediaapi googlesearch praw tweepy facebook yfinance
 alpha_vantage ccxt web3 openai anthropic cohere mistralai groq ollama replicate huggingface_hub litellm
 google.generativeai google.genai langchain langchain_openai langchain_community llama_index pinecone weaviate
 qdrant_client chromadb pymilvus boto3 botocore aiobotocore s3fs gcsfs adlfs google azure minio dropbox hcloud
 digitalocean linode_api4 cloudflare github gitlab jira atlassian shopify notion_client gspread
 googleapiclient oauth2client oauthlib authlib msal hvac consul etcd3 zookeeper kazoo sentry_sdk datadog newrelic
 segment mixpanel posthog statsd graphyte uvicorn hypercorn gunicorn waitress cheroot twisted gevent eventlet celery
 rq dramatiq huey arq apscheduler.jobstores pysnmp netmiko napalm ncclient pysmb smbclient smbprotocol pyftpdlib
 pysftp impacket.smb torrent libtorrent youtube_dl yt_dlp pytube instaloader geopy.geocoders nltk.downloader
 sklearn.datasets.fetch_openml sklearn.datasets.fetch_20newsgroups sklearn.datasets.fetch_california_housing
 transformers.pipeline transformers.AutoModel transformers.AutoTokenizer transformers.AutoModelForCausalLM
 transformers.AutoModelForSequenceClassification datasets.load_dataset torch.distributed tensorflow_hub
 keras.datasets tensorflow.keras.datasets torchvision.datasets tensorflow_datasets seaborn.load_dataset mlflow wandb
 comet_ml neptune clearml ray dask.distributed pyspark bluetooth serial usb can pyvisa pymodbus asyncua miio
 flask_socketio socks stem torpy pyngrok localtunnel upnpclient zeroconf ntplib speedtest ping3 icmplib
NETWORK flask.Flask().: run
NETWORK : aiohttp.web.run_app tornado.httpclient tornado.websocket tornado.tcpclient bottle.run
 sanic.Sanic().run tornado.httpserver django.core.management.call_command trio.open_tcp_stream trio.serve_tcp
 anyio.connect_tcp anyio.create_tcp_listener
SPEND : stripe paypalrestsdk braintree coinbase binance alpaca_trade_api square adyen razorpay robin_stocks ib_insync
COMMUNICATE : twilio slack_sdk slack slackclient sendgrid mailgun mailjet_rest yagmail vonage nexmo discord telegram
 telebot telethon pyrogram aiogram pushbullet pushover plyer win10toast apprise django.core.mail flask_mail
 fastapi_mail aiosmtplib emails postmarker resend exchangelib redmail pywhatkit matrix_client slixmpp irc
 tweepy.Client
ADMIN : kubernetes docker psutil.Process().kill psutil.Process().terminate psutil.Process().suspend pulumi
 psutil().kill psutil().terminate psutil().suspend psutil().nice libvirt proxmoxer pyroute2 iptc
 boto3.client().terminate_instances setproctitle pynput pyautogui keyboard mouse win32api win32con pywin32 wmi
 openstack
SECRET : keyring dotenv decouple.config environs dynaconf hvac pydantic_settings browser_cookie3 browsercookie
 pyperclip
 mss pyscreenshot
PROCESS : pexpect sh plumbum invoke fabric paramiko asyncssh parallel_ssh ptyprocess winpty delegator envoy sarge
 anyio.run_process anyio.open_process trio.run_process trio.lowlevel.open_process pathos multiprocess billiard loky
 ansible_runner testinfra nox tox pip_api psutil.Popen gevent.subprocess eventlet.green.subprocess
 asyncio_subprocess winrm ppadb uiautomation subprocess32 command_runner easyprocess xonsh doit scons waf
 click.launch click.edit typer.launch git.cmd
DYNAMIC : pytest.main torch.hub pandas.eval numexpr cffi numpy.f2py pip pkg_resources.load_entry_point
 pkg_resources.iter_entry_points pkg_resources.run_script cython pyximport Cython numpy.distutils
 scipy.weave weave jinja2.Template jinja2.Environment().from_string jinja2().from_string jinja2.nativetypes
 mako.template mako.lookup.TemplateLookup django.template.Template django.template.engines
 flask.render_template_string
 tornado.template.Template sympy.sympify sympy.parse_expr sympy.parsing sympy.S.__call__ asteval
 RestrictedPython numba.cfunc torch.utils.cpp_extension llvmlite js2py execjs PyV8 py_mini_racer quickjs
 dukpy STPyV8 jpype jnius pythonnet clr rpy2 oct2py matlab pymiscutils codejail IPython nbconvert nbformat papermill
 ptpython bpython pyodide transcrypt brython six.exec_ past.builtins.execfile import_string
 werkzeug.utils.import_string django.utils.module_loading stevedore pluginbase yapsy
 bytecode codetransformer uncompyle6 decompyle3 forbiddenfruit pyrasite.inject torch.package numba.extending
 sklearn.utils._testing hy langchain_experimental
 autogen.coding nuitka PyInstaller
DYNAMIC holidays.: registry EntityLoader module_name entity_name get_entity __class__
DYNAMIC pydantic.: ImportString PyObject types.ImportString v1.PyObject v1.types.PyObject v1.utils.import_string
 v1.parse_raw_as v1.parse_file_as v1.parse v1.tools deprecated parse_raw_as parse_file_as
PROCESS : PIL().show PIL.ImageShow
DYNAMIC : PIL.ImageMath
SECRET : PIL.ImageGrab
READ+WRITE duckdb().: execute executemany sql query read_csv read_parquet read_json
 from_csv_auto from_parquet install_extension load_extension
EXECUTE : setuptools.setup
READ : setuptools.find_packages pkg_resources
HARMLESS : setuptools joblib IPython.display torch.hub.__version__ pkg_resources.parse_version sympy.S numba.jit
 numba.njit numba.vectorize numba.prange torch.compile tensorflow.function jax.jit
 jinja2.Environment jinja2.FileSystemLoader jinja2.select_autoescape jinja2.PackageLoader jinja2.DictLoader
READ : jinja2.FileSystemLoader jinja2.PackageLoader flask.render_template django.shortcuts.render
 django.template.loader fastapi.templating starlette.templating
DESERIALISE : dill cloudpickle jsonpickle joblib.load torch.load torch.jit.load pandas.read_pickle pandas.io.pickle
 yaml.load yaml.load_all yaml.unsafe_load yaml.unsafe_load_all yaml.full_load yaml.Loader yaml.full_load_all
 yaml.UnsafeLoader yaml.FullLoader yaml.CLoader yaml.CFullLoader yaml.CUnsafeLoader keras.models.load_model
 tensorflow.keras.models.load_model tensorflow.saved_model.load numpy.lib.format.read_array
 sklearn.externals.joblib pickle5 zodbpickle ZODB persistent klepto shelve2 hickle compress_pickle pyro.serializers
 gensim.models.Word2Vec.load gensim.utils.unpickle spacy.util.load_model mlflow.pyfunc.load_model
 mlflow.sklearn.load_model pymc.load_trace ruamel.yaml.load ruamel.yaml.unsafe_load
 celery.serializers networkx.read_gpickle statsmodels.iolib.smpickle
 srsly.pickle_loads pandas.compat.pickle_compat torch.serialization tensorflow.keras.models.model_from_config
 numpy.core.multiarray._reconstruct
UNKNOWN : numpy.lib numpy.core numpy._core numpy.testing numpy.compat pandas.io pandas.core pandas.compat pandas.util
 pandas.testing pandas.api.extensions yaml.YAMLObject yaml.constructor
REFLECT : numpy.ctypeslib objgraph guppy pympler.muppy pyrasite six.moves six.get_function_globals varname executing
 sorcery jedi forge
HARMLESS : six.moves.range six.moves.zip six.moves.map six.moves.filter six.moves.urllib.parse numpy.lib.stride_tricks
 numpy.testing numpy.lib.scimath pandas.testing pandas.api.types
HARMLESS pandas().: query eval
HARMLESS requests.: exceptions Response codes HTTPError RequestException Timeout ConnectionError status_codes
HARMLESS httpx.: HTTPError HTTPStatusError RequestError Timeout TimeoutException Response Request URL Headers
HARMLESS aiohttp.: ClientError ClientTimeout ClientResponseError
HARMLESS urllib3.: exceptions disable_warnings util
HARMLESS sqlalchemy.: Column Integer String Float Boolean DateTime Date Text ForeignKey Table MetaData select func
 and_
 or_ not_ desc asc text types Index UniqueConstraint CheckConstraint Numeric BigInteger JSON Enum LargeBinary case
 cast
 exc event inspect insert update delete join literal
HARMLESS sqlalchemy.orm.: declarative_base relationship Mapped mapped_column DeclarativeBase backref
HARMLESS sqlalchemy.ext.: declarative hybrid
HARMLESS peewee.: Model CharField IntegerField TextField DateTimeField BooleanField ForeignKeyField FloatField
HARMLESS celery.: shared_task Celery group chain chord
HARMLESS pyspark.sql.: functions types Window
HARMLESS google.: protobuf type
HARMLESS langchain.: prompts schema
HARMLESS tensorflow_hub.: __version__
HARMLESS boto3.: exceptions
HARMLESS botocore.: exceptions
HARMLESS redis.: exceptions RedisError
HARMLESS psycopg2.: Error extensions sql
HARMLESS docker.: errors
HARMLESS psutil.: cpu_percent virtual_memory cpu_count NoSuchProcess
HARMLESS discord.: Embed Color Intents
HARMLESS grpc.: StatusCode RpcError
HARMLESS ray.: __version__
HARMLESS yaml.: safe_load safe_load_all safe_dump dump SafeLoader CSafeLoader YAMLError SafeDumper Dumper
 dump_all safe_dump_all scanner.ScannerError parser.ParserError representer
"""

_FIGURES = "figure() subplots() gcf() gca()"

RETURNS: dict[str, str] = {f"matplotlib.pyplot.{name}": "matplotlib()" for name in _FIGURES.split()}

_ASSUMED_PACKAGES = """
requests httpx boto3 paramiko numpy pandas torch yaml psutil dill joblib cloudpickle jinja2 sqlalchemy aiohttp
 psycopg2
pexpect urllib3 matplotlib scipy sklearn jsonpickle pymongo smbclient pyautogui pynput keyring telebot
"""

ASSUMED: dict[str, str] = {
    "np": "numpy",
    "get_ipython": "IPython.get_ipython",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "tf": "tensorflow",
    "sns": "seaborn",
    "nx": "networkx",
    "sp": "scipy",
    "pl": "polars",
    "nn": "torch.nn",
    "BeautifulSoup": "bs4.BeautifulSoup",
    **{name: name for name in _ASSUMED_PACKAGES.split()},
}

SOLVER_TABLE = """
UNKNOWN : qwed_new qwed_sdk qwed_legal qwed_finance qwed_ucp qwed_tax
HARMLESS qwed_new.: core.tool_approval.ToolApproval core.tool_approval.ToolApprovalSystem
 engines.logic_engine.LogicResult engines.logic_engine.verify_logic_statement
 engines.math_engine.verify_math_expression guards.code_guard.CodeGuard guards.code_guard.CodeSafety
 guards.sql_guard.SQLGuard guards.sql_guard.SQLSafety
HARMLESS qwed_sdk.: guards.system_guard.SystemGuard guards.config_guard.ConfigGuard
NETWORK qwed_sdk.: QWEDClient QWEDAsyncClient QWEDAgentClient
HARMLESS qwed_legal.: DeadlineGuard CitationGuard LiabilityGuard JurisdictionGuard StatuteOfLimitationsGuard
 ProvenanceGuard FairnessGuard LegalGuard
HARMLESS qwed_finance.: FinanceVerifier
READ qwed_finance.: ISOGuard
READ qwed_finance().: _schemas __init__ __class__ __dict__
HARMLESS qwed_ucp.: UCPVerifier
HARMLESS qwed_tax.: TaxVerifier
PROCESS sympy.: preview printing.preview print_gtk printing.gtk utilities.autowrap
DYNAMIC sympy.: external test doctest testing utilities.runtests interactive.session init_session utilities.source
 utilities.matchpy_connector plotting.pygletplot plotting.experimental_lambdify
READ sympy.: utilities.pkgdata logic.utilities.dimacs.load_file logic.utilities.load_file
 physics.quantum.qasm.read_qasm_file
WRITE sympy.: utilities.codegen
WRITE sympy().: save
READ z3.: parse_smt2_file Z3_parse_smtlib2_file Z3_solver_from_file Z3_optimize_from_file Z3_fixedpoint_from_file
READ z3().: from_file parse_file
HARMLESS z3().: set from_string
WRITE z3.: open_log append_log Z3_open_log Z3_append_log Z3_global_param_set Z3_eval_smtlib2_string
REFLECT z3.: z3core
"""
"""Libraries for writing verifications: harmless names are listed, the rest of QWED is unknown."""
