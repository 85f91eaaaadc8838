"""Common words of tool names; two of them one letter apart are two words, not a typo."""

_TEXT = """
abort accept access account accounts act action actions activate activity add added address admin affect agent alarm
alert alerts align all allow amend analyse analyze annotate answer any api app append apply approve apps archive
archived area args array article ask asset assets assign assigned attach audio audit auth author back backup balance
ban bank bar base bash batch bid bill bind bit black blob block blocks blog board boards body book bookmark books
boost border bot bots bounce box branch branches brief browse browser buffer bug bugs build builder builds bulk bundle
button buy byte cache calendar call calls cancel canvas card cards care cart case cases cast cat category cell cells
change channel channels char charge chart charts chat chats check choice chunk city claim class clean clear click
client clients clip clone close closed cloud cluster code codes cold collect collection color column columns command
comment comments commit commits compare compile complete completed compose compute config configure confirm connect
console contact contacts contain content contents context contract convert cookie cookies copy core cost costs count
counter coupon course crawl create created credit cron crop current customer customers cut cycle daily dash data
database dataset date dates day days deal deals debug declare decline default define delay delete deleted deploy
deployment desc describe design desk detail details detect device dial diff dir direct directory disable discover disk
dismiss dispute doc dock docs document documents domain done double down download downvote draft drag draw drive drop
duplicate edge edit edited element elements email embed emit emoji enable encode end endpoint enter entities entity
entry env epic error errors estimate eval evaluate event events exec execute exit expand explain export extend extract
face fact feature features feed fetch field fields figure file files fill filter find finder finish fire fix flag
flags flash flow flows fold folder folders follow font fork form format forms forum forward frame free freeze from
full function fund fuse gate gather generate get git give goal goals goto grant graph graphs grep group groups guard
guide guild halt handle hash head header health heat help hide high history hit hold holder home hook hooks host hosts
hot hour hours house hover how html http icon icons identity idle image images import inbox include index info ingest
init input insert inspect install instance intent interval invite invoice invoices invoke issue issues item items jira
job jobs join json jump keep key keys kick kill kind label labels land lane language last launch lead leads leaf
league lean learn leave ledger left legal lend level library license like limit line lines link links lint list listed
lists live load loader loads local locate location lock locked lodge log login logs long look lookup loop loss lost
low machine mail main make manage map maps mark market match math max media meet meeting member members memory mention
menu merge merged message messages meta metric metrics migrate milestone min mine minute mode model models modify
module monitor month monthly more mouse move multiple music mute name names navigate nest net network new next node
nodes note notes notification notify now number object objects off offer offers office older open opened option
options order ordered orders org organization origin out output over overview owner pack package packages pad page
pages paint pair pane panel park parse part parts pass paste patch path paths pause pay payload payment payments peer
people permission person phone photo photos pick pin ping pinned pins pipe pipeline place places plan plane plans
plant play player playlist plot plug pod pods point points poll pool pop port portal ports position post posts power
preview price prices print private process product products profile project projects prompt prompts proof property
provide proxy public publish pull purge push put queries query queue quick quit quota quote race rack raise random
range rank rate rates raw reach react reaction read reader readers ready rebase rebuild receive recent record records
recover redo reduce refactor reference refresh refund refunds region register registry reject related relation
relations release releases reload remind reminder remote remove rename render rent repair repeat replace replay reply
repo report reports repository request requests reserve reset resize resolve resource resources respond response rest
restart restore result results resume retry return reverse revert review reviews revoke ride right ring risk road role
roles roll rollback room rooms root rotate round route routes routine row rows rule rules run runs safe sale sales
sample sand save saved scale scan schedule schema schemas scope score screen screenshot script scroll seal search seat
secret section security see seed seek select self sell send sender sent sequence series server servers service
services session sessions set sets settings setup shape share sheet sheets shell shift ship shop short show shut side
sign signal similar site sites size skill skip slack sleep slice slide slides slot slow smart snap snapshot snooze
social socket soft sort sound source sources space span spawn spec spend split spot spread sprint sprints sql stack
staff stage staged stamp star starred stars start stash stat state states static stats status step steps stock stop
storage store stores story stream street string strip structure style subject submit subscribe subscription sum
summarize summary support suspend swap switch symbol sync system tab table tables tabs tag tags tail take tap target
task tasks tax team teams template tenant term terms test tests text theme then thing think thread threads throw
ticket tickets tile time timeline timer times timezone title toggle token tokens tool tools top topic topics total
touch trace traces track tracks trade traffic train transaction transactions transfer transform transition translate
trash tree trend trigger trip truncate trust try turn type types undo unit unlock unlocked unpin unstaged up update
updated updates upload uptime upvote url urls usage use user users utility validate value values variable vault vendor
verify version versions video videos view views visit visitor voice void volume vote votes wait walk wall watch
weather web webhook webhooks week weekly weight who widget width wiki wild window wire word words work worker workers
workflow workflows workspace write writer writers year yield zip zone zones zoom
"""
WORDS = frozenset(_TEXT.split())
