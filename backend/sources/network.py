"""Lists the real airports and carriers of the generated flights, in two small tables.

The airports are the 80 busiest of January 2008, with their BTS numbers and names; the flights that
`generated` makes between them are not real.
"""

import math
from dataclasses import dataclass

EARTH_RADIUS_MILES = 3959.0


@dataclass(frozen=True, slots=True)
class Airport:
    """An airport.

    code, number, city, state: as BTS writes them. latitude, longitude: degrees. utc_offset_hours:
    the offset of standard time. departures: how many a day, which is its share of the traffic.
    """

    code: str
    number: int
    city: str
    state: str
    latitude: float
    longitude: float
    utc_offset_hours: int
    departures: int

    def miles_to(self, other: "Airport") -> float:
        """Great-circle distance in statute miles (haversine formula)."""
        north, north_there = math.radians(self.latitude), math.radians(other.latitude)
        east = math.radians(other.longitude - self.longitude)
        half_chord = (
            math.sin((north_there - north) / 2) ** 2
            + math.cos(north) * math.cos(north_there) * math.sin(east / 2) ** 2
        )
        return 2 * EARTH_RADIUS_MILES * math.asin(math.sqrt(half_chord))


@dataclass(frozen=True, slots=True)
class Carrier:
    """A carrier.

    number: its number at the DOT. share: its weight among all flights. lateness: minutes added to
    every arrival delay. hubs: every flight of the carrier starts from or goes to one of these.
    """

    number: int
    share: int
    lateness: int
    hubs: tuple[str, ...]


CARRIERS: tuple[Carrier, ...] = (
    Carrier(19393, 20, 0, ("MDW", "LAS", "BWI", "DEN", "PHX", "DAL", "HOU", "OAK")),  # Southwest
    Carrier(19790, 15, -3, ("ATL", "DTW", "MSP", "SLC", "JFK")),  # Delta
    Carrier(19805, 12, 1, ("DFW", "ORD", "MIA", "LAX", "CLT")),  # American
    Carrier(20366, 10, 3, ("ATL", "IAH", "ORD", "EWR")),  # ExpressJet
    Carrier(20304, 10, 2, ("SLC", "DEN", "LAX", "SFO", "ORD")),  # SkyWest
    Carrier(19977, 9, 1, ("ORD", "IAH", "DEN", "EWR", "SFO", "IAD")),  # United
    Carrier(20355, 7, -1, ("CLT", "PHL", "PHX", "DCA")),  # US Airways
    Carrier(20398, 6, 4, ("DFW", "ORD")),  # Envoy
    Carrier(20409, 5, 2, ("JFK", "BOS", "FLL", "MCO")),  # JetBlue
    Carrier(19930, 3, -4, ("SEA", "PDX", "ANC")),  # Alaska
    Carrier(20416, 2, 8, ("FLL", "DTW", "LAS")),  # Spirit
    Carrier(20436, 2, 6, ("DEN", "MCO")),  # Frontier
    Carrier(19690, 1, -5, ("HNL", "OGG", "LIH")),  # Hawaiian
    Carrier(21171, 1, 0, ("SFO", "LAX")),  # Virgin America
)

_AIRPORTS = """
ATL|10397|Atlanta, GA|Georgia|33.64|-84.43|-5|1094
ORD|13930|Chicago, IL|Illinois|41.98|-87.91|-6|966
DFW|11298|Dallas/Fort Worth, TX|Texas|32.90|-97.04|-6|770
DEN|11292|Denver, CO|Colorado|39.86|-104.67|-7|628
LAX|12892|Los Angeles, CA|California|33.94|-118.41|-8|611
PHX|14107|Phoenix, AZ|Arizona|33.43|-112.01|-7|571
IAH|12266|Houston, TX|Texas|29.98|-95.34|-6|501
LAS|12889|Las Vegas, NV|Nevada|36.08|-115.15|-8|493
DTW|11433|Detroit, MI|Michigan|42.21|-83.35|-5|464
EWR|11618|Newark, NJ|New Jersey|40.69|-74.17|-5|402
SLC|14869|Salt Lake City, UT|Utah|40.79|-111.98|-7|400
MSP|13487|Minneapolis, MN|Minnesota|44.88|-93.22|-6|381
SFO|14771|San Francisco, CA|California|37.62|-122.38|-8|373
MCO|13204|Orlando, FL|Florida|28.43|-81.31|-5|357
CLT|11057|Charlotte, NC|North Carolina|35.21|-80.95|-5|347
LGA|12953|New York, NY|New York|40.78|-73.87|-5|332
JFK|12478|New York, NY|New York|40.64|-73.78|-5|323
BOS|10721|Boston, MA|Massachusetts|42.36|-71.01|-5|313
BWI|10821|Baltimore, MD|Maryland|39.18|-76.67|-5|287
CVG|11193|Cincinnati, OH|Kentucky|39.05|-84.67|-5|279
SEA|14747|Seattle, WA|Washington|47.45|-122.31|-8|276
PHL|14100|Philadelphia, PA|Pennsylvania|39.87|-75.24|-5|264
SAN|14679|San Diego, CA|California|32.73|-117.19|-8|259
MDW|13232|Chicago, IL|Illinois|41.79|-87.75|-6|248
DCA|11278|Washington, DC|District of Columbia|38.85|-77.04|-5|236
MEM|13244|Memphis, TN|Tennessee|35.04|-89.98|-6|227
IAD|12264|Washington, DC|District of Columbia|38.95|-77.46|-5|219
TPA|15304|Tampa, FL|Florida|27.98|-82.53|-5|218
FLL|11697|Fort Lauderdale, FL|Florida|26.07|-80.15|-5|197
OAK|13796|Oakland, CA|California|37.72|-122.22|-8|191
HNL|12173|Honolulu, HI|Hawaii|21.32|-157.92|-10|183
MCI|13198|Kansas City, MO|Missouri|39.30|-94.71|-6|180
MIA|13303|Miami, FL|Florida|25.80|-80.29|-5|179
STL|15016|St. Louis, MO|Missouri|38.75|-90.37|-6|172
RDU|14492|Raleigh/Durham, NC|North Carolina|35.88|-78.79|-5|171
CLE|11042|Cleveland, OH|Ohio|41.41|-81.85|-5|170
SJC|14831|San Jose, CA|California|37.36|-121.93|-8|161
BNA|10693|Nashville, TN|Tennessee|36.12|-86.68|-6|159
PDX|14057|Portland, OR|Oregon|45.59|-122.60|-8|158
HOU|12191|Houston, TX|Texas|29.65|-95.28|-6|155
SMF|14893|Sacramento, CA|California|38.70|-121.59|-8|154
DAL|11259|Dallas, TX|Texas|32.85|-96.85|-6|152
AUS|10423|Austin, TX|Texas|30.19|-97.67|-6|141
SNA|14908|Santa Ana, CA|California|33.68|-117.87|-8|138
SAT|14683|San Antonio, TX|Texas|29.53|-98.47|-6|126
PIT|14122|Pittsburgh, PA|Pennsylvania|40.49|-80.23|-5|124
IND|12339|Indianapolis, IN|Indiana|39.72|-86.29|-5|115
ONT|13891|Ontario, CA|California|34.06|-117.60|-8|115
MSY|13495|New Orleans, LA|Louisiana|29.99|-90.26|-6|111
ABQ|10140|Albuquerque, NM|New Mexico|35.04|-106.61|-7|111
CMH|11066|Columbus, OH|Ohio|40.00|-82.89|-5|102
JAX|12451|Jacksonville, FL|Florida|30.49|-81.69|-5|94
MKE|13342|Milwaukee, WI|Wisconsin|42.95|-87.90|-6|92
BUR|10800|Burbank, CA|California|34.20|-118.36|-8|90
PBI|14027|West Palm Beach/Palm Beach, FL|Florida|26.68|-80.10|-5|89
BDL|10529|Hartford, CT|Connecticut|41.94|-72.68|-5|88
RSW|14635|Fort Myers, FL|Florida|26.54|-81.76|-5|84
TUS|15376|Tucson, AZ|Arizona|32.12|-110.94|-7|82
RNO|14570|Reno, NV|Nevada|39.50|-119.77|-8|75
OMA|13871|Omaha, NE|Nebraska|41.30|-95.89|-6|73
OKC|13851|Oklahoma City, OK|Oklahoma|35.39|-97.60|-6|73
OGG|13830|Kahului, HI|Hawaii|20.90|-156.43|-10|67
BUF|10792|Buffalo, NY|New York|42.94|-78.73|-5|66
BHM|10599|Birmingham, AL|Alabama|33.56|-86.75|-6|66
TUL|15370|Tulsa, OK|Oklahoma|36.20|-95.89|-6|66
SDF|14730|Louisville, KY|Kentucky|38.17|-85.74|-5|65
SJU|14843|San Juan, PR|Puerto Rico|18.44|-66.00|-4|64
PVD|14307|Providence, RI|Rhode Island|41.72|-71.43|-5|64
ELP|11540|El Paso, TX|Texas|31.81|-106.38|-7|59
RIC|14524|Richmond, VA|Virginia|37.51|-77.32|-5|54
MHT|13296|Manchester, NH|New Hampshire|42.93|-71.44|-5|52
BOI|10713|Boise, ID|Idaho|43.56|-116.22|-7|49
ORF|13931|Norfolk, VA|Virginia|36.90|-76.20|-5|48
COS|11109|Colorado Springs, CO|Colorado|38.81|-104.70|-7|47
GEG|11884|Spokane, WA|Washington|47.62|-117.54|-8|44
LIH|12982|Lihue, HI|Hawaii|21.98|-159.34|-10|44
LIT|12992|Little Rock, AR|Arkansas|34.73|-92.22|-6|44
ROC|14576|Rochester, NY|New York|43.12|-77.67|-5|44
DSM|11423|Des Moines, IA|Iowa|41.53|-93.66|-6|44
ANC|10299|Anchorage, AK|Alaska|61.17|-150.00|-9|43
"""


def _airport(row: str) -> Airport:
    code, number, city, state, latitude, longitude, offset, departures = row.split("|")
    place = (float(latitude), float(longitude))
    return Airport(code, int(number), city, state, *place, int(offset), int(departures))


AIRPORTS: dict[str, Airport] = {
    airport.code: airport for airport in map(_airport, _AIRPORTS.split("\n")[1:-1])
}
