"""Rule tables of common packages; `library_rules` describes the format. Any other package is unknown."""

TABLE = """
HARMLESS : pydantic_settings.SettingsConfigDict aiohttp.web numexpr.__version__ filelock.Timeout sqlalchemy.Column
 sqlmodel.Field sentry_sdk.set_tag jax.numpy cloudpickle.__version__ snowflake.__version__ pkg_resources.parse_version
 uncertainties.ufloat forex_python.__version__ yfinance.__version__ pyspark.__version__ nbformat.__version__
 gevent.__version__ eventlet.__version__
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
 importlib_resources psutil watchdog decouple linecache2 magic.from_file filetype.guess exifread
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
 keras().save tensorflow().save transformers().save_pretrained sklearn.datasets.dump_svmlight_file scipy.io.savemat
 scipy.io.wavfile.write soundfile.write h5py h5netcdf netCDF4 tables zarr pypdf.PdfWriter().write pypdf().write
 PyPDF2().write reportlab.pdfgen.canvas.Canvas fpdf().output lxml().write networkx.write_edgelist networkx.write_gml
 networkx.write_graphml networkx.write_gexf loguru.logger.add filelock portalocker dotenv.set_key joblib.dump
 geopandas().to_file xarray().to_netcdf moviepy().write_videofile gtts tinydb diskcache sqlitedict lmdb plyvel rocksdb
 leveldb git dulwich nltk.download spacy().to_disk gensim().save qrcode().save rich().save_html rich().export_html
 click.open_file typer.open_file pydub().export send2trash pyfakefs ansible
 watchgod
UNKNOWN : appdirs platformdirs
HARMLESS platformdirs.: user_documents_dir user_downloads_dir user_pictures_dir user_videos_dir user_music_dir
 user_desktop_dir AppDirs __version__ user_documents_path user_downloads_path user_pictures_path user_videos_path
 user_music_path user_desktop_path
HARMLESS appdirs.: user_data_dir user_config_dir user_cache_dir user_state_dir user_log_dir site_data_dir
 site_config_dir site_cache_dir AppDirs __version__
READ+WRITE : aiofiles click.File h5py.File smart_open jsonlines.open fsspec duckdb aiosqlite anyio.open_file
 anyio.Path trio.Path trio.open_file
DELETE : aiofiles.os.remove aiofiles.os.unlink aiofiles.os.rmdir send2trash.send2trash aioshutil.rmtree
NETWORK : requests httpx urllib3 aiohttp websockets websocket socketio engineio grpc pycurl treq httplib2 mechanize
 mechanicalsoup requests_html requests_oauthlib requests_toolbelt cloudscraper scrapy selenium playwright.sync_api
 playwright.async_api pyppeteer splinter zeep suds thrift Pyro4 Pyro5 rpyc zmq nanomsg pynng kombu pika aio_pika
 confluent_kafka kafka aiokafka nats stomp paho psycopg2 psycopg asyncpg pymysql MySQLdb mysql aiomysql cx_Oracle
 oracledb pyodbc pymssql pymongo motor redis aioredis memcache pymemcache pylibmc cassandra neo4j py2neo influxdb
 influxdb_client elasticsearch opensearchpy pysolr sqlalchemy sqlmodel peewee pony tortoise databases
 clickhouse_driver clickhouse_connect snowflake trino prestodb pyhive impala ldap ldap3 dns dnspython whois scapy nmap
 shodan impacket tldextract.TLDExtract feedparser newspaper wikipedia wikipediaapi googlesearch praw tweepy facebook
 yfinance alpha_vantage ccxt web3 openai anthropic cohere mistralai groq ollama replicate huggingface_hub litellm
 google.generativeai google.genai langchain langchain_openai langchain_community llama_index pinecone weaviate
 qdrant_client chromadb pymilvus boto3 botocore aiobotocore s3fs gcsfs adlfs google azure minio dropbox hcloud
 digitalocean linode_api4 cloudflare github gitlab jira atlassian shopify notion_client gspread googleapiclient
 oauth2client oauthlib authlib msal hvac consul etcd3 zookeeper kazoo sentry_sdk datadog newrelic segment mixpanel
 posthog statsd graphyte uvicorn hypercorn gunicorn waitress cheroot twisted gevent eventlet celery rq dramatiq huey
 arq apscheduler.jobstores pysnmp netmiko napalm ncclient pysmb smbclient smbprotocol pyftpdlib pysftp impacket.smb
 torrent libtorrent youtube_dl yt_dlp pytube instaloader geopy.geocoders nltk.downloader sklearn.datasets.fetch_openml
 sklearn.datasets.fetch_20newsgroups sklearn.datasets.fetch_california_housing transformers.pipeline
 transformers.AutoModel transformers.AutoTokenizer transformers.AutoModelForCausalLM
 transformers.AutoModelForSequenceClassification datasets.load_dataset torch.distributed tensorflow_hub keras.datasets
 tensorflow.keras.datasets torchvision.datasets tensorflow_datasets seaborn.load_dataset mlflow wandb comet_ml neptune
 clearml ray dask.distributed pyspark bluetooth serial usb can pyvisa pymodbus asyncua miio flask_socketio socks stem
 torpy pyngrok localtunnel upnpclient zeroconf ntplib speedtest ping3 icmplib
NETWORK flask.Flask().: run
NETWORK : aiohttp.web.run_app tornado.httpclient tornado.websocket tornado.tcpclient bottle.run sanic.Sanic().run
 tornado.httpserver django.core.management.call_command trio.open_tcp_stream trio.serve_tcp anyio.connect_tcp
 anyio.create_tcp_listener
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
 pyperclip mss pyscreenshot
PROCESS : pexpect sh plumbum invoke fabric paramiko asyncssh parallel_ssh ptyprocess winpty delegator envoy sarge
 anyio.run_process anyio.open_process trio.run_process trio.lowlevel.open_process pathos multiprocess billiard loky
 ansible_runner testinfra nox tox pip_api psutil.Popen gevent.subprocess eventlet.green.subprocess asyncio_subprocess
 winrm ppadb uiautomation subprocess32 command_runner easyprocess xonsh doit scons waf click.launch click.edit
 typer.launch git.cmd
DYNAMIC : pytest.main torch.hub pandas.eval numexpr cffi numpy.f2py pip pkg_resources.load_entry_point
 pkg_resources.iter_entry_points pkg_resources.run_script cython pyximport Cython numpy.distutils scipy.weave weave
 jinja2.Template jinja2.Environment().from_string jinja2().from_string jinja2.nativetypes mako.template
 mako.lookup.TemplateLookup django.template.Template django.template.engines flask.render_template_string
 tornado.template.Template sympy.sympify sympy.parse_expr sympy.parsing sympy.S.__call__ asteval RestrictedPython
 numba.cfunc torch.utils.cpp_extension llvmlite js2py execjs PyV8 py_mini_racer quickjs dukpy STPyV8 jpype jnius
 pythonnet clr rpy2 oct2py matlab pymiscutils codejail IPython nbconvert nbformat papermill ptpython bpython pyodide
 transcrypt brython six.exec_ past.builtins.execfile import_string werkzeug.utils.import_string
 django.utils.module_loading stevedore pluginbase yapsy bytecode codetransformer uncompyle6 decompyle3 forbiddenfruit
 pyrasite.inject torch.package numba.extending sklearn.utils._testing hy langchain_experimental autogen.coding nuitka
 PyInstaller
DYNAMIC holidays.: registry EntityLoader module_name entity_name get_entity __class__
DYNAMIC pydantic.: ImportString PyObject types.ImportString v1.PyObject v1.types.PyObject v1.utils.import_string
 v1.parse_raw_as v1.parse_file_as v1.parse v1.tools deprecated parse_raw_as parse_file_as
WRITE pandas().: to_string to_typst
WRITE : prometheus_client.write_to_textfile plotly().write_json rich().save_svg rich().save_text seaborn().savefig
 seaborn().save altair().save docx().save geopandas().to_feather geopandas().to_parquet xarray().to_zarr
 lightgbm().save_model lightgbm().save_binary xgboost().save_model xgboost().dump_model xgboost().save_binary
 tensorflow().save_weights tensorflow().export keras().save_weights keras().export pulp().writeLP pulp().writeMPS
 pulp().to_json holidays().save_ics matplotlib().print_figure matplotlib().print_pdf matplotlib().print_png
 matplotlib().print_svg matplotlib().print_jpg matplotlib().print_ps matplotlib().print_eps matplotlib().save
 matplotlib().to_html5_video statsmodels().save polars().write_excel polars().write_avro polars().write_delta
 polars().write_database polars().write_ndjson polars().write_iceberg polars().sink_ndjson polars().sink_ipc
 polars().serialize polars().write_clipboard lxml().write_c14n pypdf.PdfWriter pypdf.PdfMerger markdown().convertFile
 lark().save matplotlib.image.imsave mpl_toolkits().savefig sympy().saveimage dask().to_csv dask().to_parquet
 dask().to_json dask().to_hdf dask().to_orc dask().to_sql pulp.writeLP networkx.write_network_text
 networkx.write_adjlist networkx.write_pajek networkx.write_graph6 networkx.write_sparse6 networkx.write_latex
 networkx.write_weighted_edgelist networkx.write_multiline_adjlist pandas().to_iceberg boltons.fileutils.atomic_save
READ : PIL.ImageFont.truetype PIL.ImageFont.load matplotlib.image.imread xgboost().load_model keras().load_weights
 tensorflow().load_weights pint().load_definitions pyparsing().parse_file lxml().xinclude networkx.read_gexf
 networkx.read_pajek networkx.read_graph6 networkx.read_sparse6 networkx.read_weighted_edgelist
 sklearn.datasets.load_sample_image sklearn.datasets.load_sample_images pandas.read_iceberg polars.read_avro
 polars.read_delta polars.scan_ipc polars.scan_ndjson polars.read_ods polars.read_ipc_stream
EXECUTE : joblib.Parallel pulp().solve
NETWORK : starlette.testclient fastapi.testclient prometheus_client.start_http_server prometheus_client.push_to_gateway
 sklearn.datasets.fetch_lfw_people sklearn.datasets.fetch_olivetti_faces sklearn.datasets.fetch_covtype
 statsmodels.datasets.get_rdataset
 statsmodels.api.datasets.get_rdataset statsmodels.api.datasets.webuse
WRITE : click().isolated_filesystem pyparsing().create_diagram catboost().save_model
NETWORK : tiktoken.get_encoding tiktoken.encoding_for_model email_validator.validate_email
DESERIALISE : polars().deserialize polars.DataFrame.deserialize polars.LazyFrame.deserialize polars.Expr.deserialize
UNKNOWN flask().: from_pyfile from_file from_object from_envvar from_prefixed_env open_resource
 open_instance_resource send_static_file
UNKNOWN jinja2().: compile compile_templates compile_expression dump add_extension
UNKNOWN lark().: open open_from_package load
UNKNOWN pydantic().: parse_file parse_raw
UNKNOWN rich().: pager
READ rich().: from_path
READ : jsonschema.RefResolver
WRITE platformdirs.: user_runtime_dir user_runtime_path site_runtime_dir site_runtime_path
WRITE platformdirs().: user_runtime_dir user_runtime_path site_runtime_dir site_runtime_path
UNKNOWN pytest().: syspath_prepend setattr delattr
ADMIN pytest().: chdir
UNKNOWN : numpy.lib.stride_tricks.as_strided msgspec.convert
DYNAMIC : mpmath().identify mpmath.identify mpmath.mp.identify mpmath.fp.identify mpmath.iv.identify
READ pint().: load_definitions
WRITE : mpmath.plot mpmath.cplot mpmath.splot mpmath.mp.plot mpmath.mp.cplot PIL().save_lut
READ : pyparsing().parseFile pyparsing().parse_file pyparsing.ParserElement.parse_file pyparsing.ParserElement.parseFile
READ : PIL().load_lut rich.theme.Theme.read rich.traceback.Frame rich.traceback.Trace rich().open rich.progress.open
 rich.progress.wrap_file rich.traceback.Stack
NETWORK : lxml.html.submit_form
UNKNOWN : wrapt.decorator markdown().registerExtensions
READ lark().: open_from_package
UNKNOWN altair().: serve open_editor show
UNKNOWN nltk().: load save download open_string
UNKNOWN textblob().: translate detect_language
PROCESS : PIL().show PIL.ImageShow
DYNAMIC : PIL.ImageMath
SECRET : PIL.ImageGrab
READ+WRITE duckdb().: execute executemany sql query read_csv read_parquet read_json from_csv_auto from_parquet
 install_extension load_extension
EXECUTE : setuptools.setup
READ : setuptools.find_packages pkg_resources
HARMLESS : torch.hub.__version__ pkg_resources.parse_version sympy.S numba.jit numba.njit numba.vectorize numba.prange
 torch.compile tensorflow.function jax.jit jinja2.Environment jinja2.FileSystemLoader jinja2.select_autoescape
 jinja2.PackageLoader jinja2.DictLoader
READ : jinja2.FileSystemLoader jinja2.PackageLoader flask.render_template django.shortcuts.render
 django.template.loader fastapi.templating starlette.templating
DESERIALISE : dill cloudpickle jsonpickle joblib.load torch.load torch.jit.load pandas.read_pickle pandas.io.pickle
 yaml.load yaml.load_all yaml.unsafe_load yaml.unsafe_load_all yaml.full_load yaml.Loader yaml.full_load_all
 yaml.UnsafeLoader yaml.FullLoader yaml.CLoader yaml.CFullLoader yaml.CUnsafeLoader keras.models.load_model
 tensorflow.keras.models.load_model tensorflow.saved_model.load numpy.lib.format.read_array sklearn.externals.joblib
 pickle5 zodbpickle ZODB persistent klepto shelve2 hickle compress_pickle pyro.serializers gensim.models.Word2Vec.load
 gensim.utils.unpickle spacy.util.load_model mlflow.pyfunc.load_model mlflow.sklearn.load_model pymc.load_trace
 ruamel.yaml.load ruamel.yaml.unsafe_load celery.serializers networkx.read_gpickle statsmodels.iolib.smpickle
 srsly.pickle_loads pandas.compat.pickle_compat torch.serialization tensorflow.keras.models.model_from_config
 numpy.core.multiarray._reconstruct
UNKNOWN : numpy.lib numpy.core numpy._core numpy.testing numpy.compat pandas.io pandas.core pandas.compat pandas.util
 pandas.testing pandas.api.extensions yaml.YAMLObject yaml.constructor
REFLECT : numpy.ctypeslib objgraph guppy pympler.muppy pyrasite six.moves six.get_function_globals varname executing
 sorcery jedi forge
HARMLESS : six.moves.range six.moves.zip six.moves.map six.moves.filter six.moves.urllib.parse numpy.lib.scimath
HARMLESS pandas().: query eval
HARMLESS requests.: exceptions Response codes HTTPError RequestException Timeout ConnectionError status_codes
HARMLESS httpx.: HTTPError HTTPStatusError RequestError Timeout TimeoutException Response Request URL Headers
HARMLESS aiohttp.: ClientError ClientTimeout ClientResponseError
HARMLESS urllib3.: exceptions disable_warnings util
HARMLESS sqlalchemy.: Column Integer String Float Boolean DateTime Date Text ForeignKey Table MetaData select func
 and_ or_ not_ desc asc text types Index UniqueConstraint CheckConstraint Numeric BigInteger JSON Enum LargeBinary
 case cast exc event inspect insert update delete join literal
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
HARMLESS yaml.: safe_load safe_load_all safe_dump dump SafeLoader CSafeLoader YAMLError SafeDumper Dumper dump_all
 safe_dump_all scanner.ScannerError parser.ParserError representer
UNKNOWN : matplotlib.rcParams matplotlib.pyplot.rcParams matplotlib.rc matplotlib.pyplot.rc matplotlib.pyplot.rc_context
 matplotlib.use matplotlib.pyplot.switch_backend matplotlib.style matplotlib.rcParamsDefault matplotlib.rcParamsOrig
 matplotlib.pyplot.rcParamsDefault matplotlib.pyplot.rcParamsOrig
HARMLESS : matplotlib.style.available faker.Faker.seed
UNKNOWN : numpy.lib.stride_tricks.as_strided importlib_metadata
HARMLESS numpy.lib.stride_tricks.: sliding_window_view broadcast_to broadcast_arrays
HARMLESS numpy.testing.: assert_ assert_allclose assert_almost_equal assert_approx_equal assert_array_almost_equal
 assert_array_almost_equal_nulp assert_array_equal assert_array_less assert_array_max_ulp assert_equal
 assert_no_warnings assert_raises assert_raises_regex assert_string_equal assert_warns suppress_warnings
HARMLESS pandas.testing.: assert_extension_array_equal assert_frame_equal assert_index_equal assert_series_equal
READ pyparsing().: parseFile
READ lark().: open open_from_package
DESERIALISE : lark.Lark.load lark.lark.Lark.load
READ : lark.lark.Lark lark.Lark.open lark.Lark.open_from_package pint.registry.UnitRegistry
WRITE PIL().: save_lut
READ PIL().: load_lut
UNKNOWN : dateutil.tz.gettz dateutil.tz.tzfile dateutil.tz.tzical markdown.core.markdown markdown.core.Markdown
UNKNOWN markdown().: registerExtensions build_extension
DYNAMIC mpmath.: identify mp.identify fp.identify iv.identify
UNKNOWN mpmath().: identify
WRITE mpmath.: plot cplot splot mp.plot mp.cplot mp.splot fp.plot fp.cplot fp.splot
WRITE mpmath().: plot cplot splot
UNKNOWN : jsonschema.validate jsonschema.validators.validate jsonschema.Draft3Validator jsonschema.Draft4Validator
 jsonschema.Draft6Validator jsonschema.Draft7Validator jsonschema.Draft201909Validator jsonschema.Draft202012Validator
HARMLESS jsonschema.: Draft3Validator.check_schema Draft4Validator.check_schema Draft6Validator.check_schema
 Draft7Validator.check_schema Draft201909Validator.check_schema Draft202012Validator.check_schema
UNKNOWN jsonschema().: evolve
UNKNOWN : hypothesis.given hypothesis.find hypothesis.reproduce_failure hypothesis.strategies.SearchStrategy.example
UNKNOWN hypothesis().: example
UNKNOWN : pygments.formatters.get_formatter_by_name
UNKNOWN click().: auto_envvar_prefix resolve_envvar_value value_from_envvar
UNKNOWN pytest().: chdir setenv delenv syspath_prepend setitem delitem
UNKNOWN : pytest.MonkeyPatch
READ rich().: from_path read wrap_file
UNKNOWN matplotlib().: set_fontproperties set_font set_font_properties
WRITE matplotlib().: print_raw print_rgba print_svgz print_pgf print_jpeg print_tif print_tiff print_webp print_gif
 print_avif
READ lxml().: parse
UNKNOWN lxml().: xslt relaxng xmlschema
READ : lxml.etree.ElementTree
UNKNOWN PIL().: toqimage toqpixmap
UNKNOWN : altair.Chart.serve altair.Chart.open_editor altair.Chart.show
NETWORK astropy().: from_name radial_velocity_correction get_constellation
UNKNOWN : jinja2.PackageLoader jinja2.Environment.compile_templates jinja2.Environment.compile
 jinja2.Environment.compile_expression jinja2.Environment.add_extension jinja2.Environment.overlay
UNKNOWN jinja2().: overlay
READ jax.numpy.: load fromfile
WRITE jax.numpy.: save savez
UNKNOWN : jax.numpy.from_dlpack urllib3.util langchain.prompts langchain.schema psycopg2.extensions aiohttp.web
 torch.compile
HARMLESS urllib3.util.: Retry Timeout retry.Retry timeout.Timeout parse_url url.parse_url
HARMLESS aiohttp.web.: Application Request Response json_response RouteTableDef HTTPException HTTPNotFound
 HTTPBadRequest HTTPFound HTTPUnauthorized HTTPForbidden get post put delete patch middleware
UNKNOWN celery().: config_from_object config_from_envvar autodiscover_tasks start worker_main
EXECUTE keras().: from_config compile_from_config
EXECUTE tensorflow().: from_config compile_from_config
READ docx().: add_picture
READ+EXECUTE gensim().: load load_binary_data load_fasttext_format
READ+EXECUTE statsmodels().: load
READ+EXECUTE pytorch_lightning().: load_from_checkpoint
READ+EXECUTE lightning().: load_from_checkpoint
EXECUTE sqlglot().: load
READ+EXECUTE tslearn().: from_pickle from_json from_hdf5
WRITE tslearn().: to_pickle to_json to_hdf5
READ geopandas().: from_file from_postgis
WRITE geopandas().: to_postgis to_csv to_json to_excel to_hdf to_html to_sql to_stata to_orc to_xml to_latex to_markdown
 to_pickle to_clipboard to_string
WRITE loguru.logger.: configure start
READ : loguru.logger.parse
READ mip().: read
WRITE mip().: write
WRITE polars().: write_ipc_stream sink_delta sink_iceberg save_to_file
READ polars().: sql load_from_file
EXECUTE polars().: show_graph
READ pulp().: fromMPS fromJson from_json
WRITE pulp().: toJson
EXECUTE pulp().: sequentialSolve
EXECUTE plotly().: to_image
UNKNOWN : plotly.io.to_image plotly.io.kaleido plotly.io.renderers pandas.options.plotting pandas.set_option
 pandas.option_context
READ pandas().: from_custom_template
DYNAMIC pyparsing().: set_break setBreak
READ rich().: open
UNKNOWN fastapi().: frontend
READ unidiff().: from_filename
WRITE workalendar().: export_to_ical
READ xlsxwriter().: insert_image embed_image set_background
UNKNOWN xarray().: eval query
WRITE ahocorasick().: save
UNKNOWN pydantic.: BaseModel.parse_raw BaseModel.parse_file RootModel.parse_raw RootModel.parse_file
UNKNOWN : faker.Faker jinja2.Environment numba.jit numba.njit numba.vectorize numba.guvectorize wrapt.decorator
 optuna.create_study optuna.load_study sklearn.feature_extraction.text.CountVectorizer hdbscan.HDBSCAN
 sklearn.feature_extraction.text.TfidfVectorizer sklearn.feature_extraction.text.HashingVectorizer
 lightgbm.Booster lightgbm.Dataset lightgbm.train lightgbm.cv xgboost.Booster xgboost.DMatrix xgboost.QuantileDMatrix
 xgboost.train
"""

_FIGURES = "figure() subplots() gcf() gca()"

RETURNS: dict[str, str] = {
    **{f"matplotlib.pyplot.{name}": "matplotlib()" for name in _FIGURES.split()},
    "matplotlib.pyplot.style": "matplotlib.style",
    "lark.Lark": "lark.lark.Lark",
    "pint.UnitRegistry": "pint.registry.UnitRegistry",
    "markdown.markdown": "markdown.core.markdown",
    "markdown.Markdown": "markdown.core.Markdown",
}

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
