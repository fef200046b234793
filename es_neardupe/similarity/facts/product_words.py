"""Words of titles of products: of one edition, condition, size, colour or material, or of another one."""

from __future__ import annotations

from es_neardupe.similarity.facts.word_lists import words_of

EDITIONS = words_of("pro max plus ultra mini lite fe se air")
"""Words by which products of one name are others: a title has one, or not."""
CONDITIONS = words_of(
    """
    defective broken damaged defekt defekte defektes kaputt beschädigt audiobook hörbuch cellular
    refurbished renewed reconditioned faux imitation artificial replica plated
    generalüberholt generalüberholte generalüberholter generalüberholtes gebraucht gebrauchte gebrauchter gebrauchtes
    reconditionné reconditionnée reconditionnés reconditionnées simili plaqué plaquée
    decaf decaffeinated entkoffeiniert entkoffeinierter décaféiné descafeinado decaffeinato
    reacondicionado reacondicionada reacondicionados reacondicionadas imitación chapado chapada
    ricondizionato ricondizionata ricondizionati ricondizionate usato usata finta finto placcato placcata
    """
)
"""The same of products that are not new, or not of what they seem to be."""
SIZES_OF_ONE_LETTER = words_of("S M L")
"""Sizes of clothes that are in capitals."""
SIZES = words_of("xs xl xxl xxxl")
SIZES_IN_WORDS = {"small": "s", "medium": "m", "large": "l"}
WRITTEN_SIZES = {"2xl": "xxl", "3xl": "xxxl"}
"""Other ways to write some."""
BEFORE_SIZES = {"small": "xs", "large": "xl"}
"""What ``x`` or ``extra`` makes of a size."""

QUALITIES = {
    word: (quality, frozenset(values.split(",")))
    for quality, values, *words in map(
        str.split,
        """
        colour black black schwarz schwarze schwarzer schwarzes noir noire
        colour black noirs noires negro negra negros negras nero nera
        colour white white weiß weiss weiße weißer weißes blanc blanche
        colour white blancs blanches blanco blanca blancos blancas bianco bianca
        colour red red rot rote roter rotes rouge rouges rojo roja rojos rojas rosso rossa
        colour blue blue navy blau blaue blauer blaues bleu bleue bleus bleues azul azules blu
        colour green green grün grüne grüner grünes vert verte verts vertes verde verdes
        colour yellow yellow gelb gelbe gelber gelbes jaune jaunes amarillo amarilla giallo gialla
        colour grey grey gray grau graue grauer graues gris grise grises grigio grigia
        colour brown brown braun braune brauner braunes marron brun brune marrón marrone
        colour pink pink rosa
        colour purple purple violet lila violett violette morado morada viola
        colour orange orange naranja arancione
        colour beige beige
        colour turquoise turquoise türkis turquesa turchese
        colour gold gold golden dorado dorada doré dorée
        colour silver silver silber silbern plateado plateada argenté argentée
        person man men mens man herren männer homme hommes hombre hombres caballero uomo
        person woman women womens woman ladies lady damen frauen femme femmes mujer mujeres donna
        person boy,child boys boy jungen garçon garçons niño niños bambino
        person girl,child girls girl mädchen fille filles niña niñas bambina
        person child kids kid children child kinder enfant enfants infantil bambini
        side left left links linke linker gauche izquierda izquierdo sinistra sinistro
        side right right rechts rechte rechter droite droit derecha derecho destra destro
        material steel,metal,stainless stainless inox edelstahl inoxydable inoxidable
        material steel,metal steel stahl acier acero acciaio
        material steel,metal,stainless,aluminium,iron,brass,copper metal metall métal
        material aluminium,metal aluminium aluminum alu aluminio alluminio
        material iron,metal iron gusseisen fonte hierro ghisa
        material brass,metal brass messing laiton latón ottone
        material copper,metal copper kupfer cuivre cobre rame
        material plastic plastic kunststoff plastik plastique plástico plastica
        material glass glass glas verre vidrio vetro
        material ceramic ceramic keramik céramique cerámica ceramica porcelain porzellan porcelaine porcelana
        material wood,oak,pine,beech,bamboo wood wooden holz bois madera legno
        material oak,wood oak eiche chêne roble rovere
        material pine,wood pine kiefer pino
        material bamboo,wood bamboo bambus bambou bambú
        material cotton cotton baumwolle coton algodón cotone
        material linen linen leinen lino
        material wool wool wolle laine lana
        material silk silk seide soie seda seta
        material polyester polyester
        material leather leather leder cuir cuero pelle
        material rubber,silicone rubber gummi caoutchouc goma gomma
        material silicone,rubber silicone silikon silicona
        size small small klein kleine kleiner petit petite pequeño pequeña piccolo piccola
        size medium medium mittel
        size large large groß große großer grand grande
        """.strip().splitlines(),
    )
    for word in words
}
"""Word -> what it says of a product, and the values that it may have: a boy is a child."""


def _by_line(lines: str) -> dict[str, str]:
    """The words of each line, with its first one."""
    rows = (line.split() for line in lines.strip().splitlines())
    return {word: row[0] for row in rows for word in row}


PARTS = _by_line(
    """
    case cases cover covers sleeve hülle schutzhülle étui coque funda custodia
    strap straps armband correa cinturino
    charger ladegerät chargeur cargador caricabatterie
    cable kabel câble cavo
    adapter adaptateur adaptador adattatore
    filter filters filtre filtres filtro filtri
    refill refills nachfüllpack nachfüllbeutel nachfüller recharge recarga ricarica
    replacement spare ersatz ersatzteil rechange repuesto ricambio
    cartridge cartridges toner ink tinte patrone druckerpatrone encre tinta inchiostro cartouche cartucho cartuccia
    blades klingen lames cuchillas
    heads aufsteckbürsten brossettes
    holder stand mount bracket halter halterung ständer soporte supporto
    lid deckel couvercle coperchio
    legs beine
    reel
    pads polster
    protector schutzfolie panzerglas displayschutz
    remote fernbedienung télécommande telecomando
    upgrade
    """
)
"""Parts of products: a title that has one of them is that of another product. Those in a line are one."""
FLAVOURS = _by_line(
    """
    cherry kirsche kirsch cerise cereza ciliegia
    lemon zitrone citron limón limone
    lime limette
    strawberry erdbeere erdbeer fraise fresa fragola
    raspberry himbeere himbeer framboise frambuesa lampone
    blueberry heidelbeere blaubeere myrtille arándano mirtillo
    cranberry
    banana banane plátano
    apfel manzana mela
    peach pfirsich pêche melocotón
    apricot aprikose abricot albaricoque albicocca
    mango
    pineapple ananas piña
    coconut kokos coco cocco
    grapefruit pamplemousse pomelo pompelmo
    melon melone watermelon wassermelone pastèque sandía anguria
    passionfruit maracuja maracuyá
    ginger ingwer gingembre jengibre zenzero
    cinnamon zimt cannelle canela cannella
    vanilla vanille vainilla vaniglia
    caramel karamell caramelo caramello
    hazelnut haselnuss noisette avellana nocciola
    almond mandel amande almendra mandorla
    peanut erdnuss cacahuète cacahuete arachide
    pistachio pistazie pistache pistacho pistacchio
    mint peppermint minze pfefferminze menthe menta
    lavender lavendel lavande lavanda
    eucalyptus eukalyptus eucalipto
    jasmine jasmin jazmín gelsomino
    chamomile kamille camomille manzanilla camomilla
    honey honig miel miele
    garlic knoblauch ail ajo aglio
    onion zwiebel oignon cebolla cipolla
    basil basilikum basilic albahaca basilico
    vinegar essig vinaigre vinagre aceto
    chili chilli
    paprika
    salmon lachs saumon salmón salmone
    tuna thunfisch thon atún tonno
    chicken huhn hähnchen poulet pollo
    beef rind bœuf boeuf ternera manzo
    matcha
    zero diet
    unsweetened ungesüßt
    alcohol alkoholfrei
    sugar zuckerfrei
    gluten glutenfrei
    lactose laktosefrei
    wholegrain wholemeal vollkorn integrale
    spicy scharf piquant picante piccante
    smoked geräuchert fumé ahumado affumicato
    dvd
    audiobook hörbuch
    """
)
"""The same of flavours and other variants."""
NUMBERED = words_of(
    """
    part parts vol volume book season episode edition ed issue chapter no № nr band teil folge staffel ausgabe auflage
    tome partie saison édition parte volumen tomo temporada edición edizione stagione deel
    """
)
"""Words next to the number of a part."""
BETWEEN_ENDS = words_of("to auf nach vers zu")
"""Between two words that are others in another order: HDMI to VGA."""
BEFORE_ADDITIONS = words_of("with w incl including inkl inklusive mit avec con")
"""Words before a part that comes with the product."""
